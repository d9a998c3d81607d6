import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../config/config.module.js';
import { readSettings } from '../config/settings.js';
import { answer, Receiver, reset, type Behaviour } from '../../test/support/receiver.js';
import { eventually } from '../../test/support/eventually.js';
import { standStill } from '../../test/support/stand-still.js';
import { Outbound } from '../outbound/outbound.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';

const caller = { clientId: 'publisher' };

describe('documentation that this machine has no means to fetch', () => {
  beforeEach(() => Logger.overrideLogger(false));
  afterEach(() => Logger.overrideLogger(true));

  const check = (mode: string) => {
    const settings = readSettings({ DOCUMENTATION_LINK_CHECK: mode });
    const outOfFiles = new Outbound(settings, (_name, _options, found) =>
      found(Object.assign(new Error('getaddrinfo EMFILE'), { code: 'EMFILE' }), ''),
    );
    const link = 'http://documentation.test/';
    return new DocumentationLinkCheck({ settings } as Config, outOfFiles).check(link, 'documentationLink', caller);
  };

  it('does not have its channel refused: it may be tried again', async () => {
    await expect(check('enforce')).rejects.toMatchObject({ status: 503 });
  });

  it('keeps no channel away where a warning is enough', async () => {
    await expect(check('warn')).resolves.toBeUndefined();
  });
});

describe('documentation that this process kept waiting while it stood still', () => {
  class UnhurriedCheck extends DocumentationLinkCheck {
    protected override readonly timeoutMs = 1000;
  }
  let receiver: Receiver;
  beforeEach(async () => {
    Logger.overrideLogger(false);
    receiver = await Receiver.start();
  });
  afterEach(async () => {
    Logger.overrideLogger(true);
    await receiver.stop();
  });

  const checkWhere = (behaviour: Behaviour) => {
    receiver.next((request, response) => {
      behaviour(request, response);
      standStill(1500);
    });
    const settings = readSettings({ DOCUMENTATION_LINK_CHECK: 'enforce' });
    return new UnhurriedCheck({ settings }, new Outbound(settings)).check(receiver.url, 'documentationLink', caller);
  };

  it('is judged by the answer that lay in the socket meanwhile', async () => {
    await expect(checkWhere(answer(200))).resolves.toBeUndefined();
  });

  it('does not have its channel refused where its server gave up', async () => {
    await expect(checkWhere(reset)).rejects.toMatchObject({ status: 503 });
  });
});

describe('documentation behind a firewall that refuses calls that do not say whose they are', () => {
  it('is fetched with a User-Agent and an Accept', async () => {
    const receiver = await Receiver.start();
    const settings = readSettings({ DOCUMENTATION_LINK_CHECK: 'enforce' });
    receiver.next(answer(200));
    await new DocumentationLinkCheck({ settings }, new Outbound(settings)).check(
      receiver.url,
      'documentationLink',
      caller,
    );
    const { headers } = receiver.requests.at(-1)!;
    expect(headers).toMatchObject({ 'user-agent': expect.stringMatching(/^Heraut\/\d/), accept: '*/*' });
    await receiver.stop();
  });
});

describe('documentation of which too much is fetched', () => {
  class ImpatientCheck extends DocumentationLinkCheck {
    protected override readonly timeoutMs = 60_000;
    protected override readonly turnMs = 200;
  }
  let receiver: Receiver;
  beforeEach(async () => {
    Logger.overrideLogger(false);
    receiver = await Receiver.start();
  });
  afterEach(async () => {
    Logger.overrideLogger(true);
    await receiver.stop();
  });

  /** With as much as one caller may have fetched at once, of which nothing answers yet. */
  const whileEightAreFetched = async (mode: string, then: (check: ImpatientCheck) => Promise<void>) => {
    const answers: (() => void)[] = [];
    receiver.always((request, response) => void answers.push(() => answer(200)(request, response)));
    const settings = readSettings({ DOCUMENTATION_LINK_CHECK: mode });
    const check = new ImpatientCheck({ settings }, new Outbound(settings));
    const first = Array.from({ length: 8 }, () => check.check(receiver.url, 'documentationLink', caller));
    await eventually(() => answers.length === 8, 'the calls');
    await then(check);
    for (const end of answers.splice(0)) end();
    await Promise.all(first);
  };

  it('is called eight times at once for one caller, whose ninth is refused, and for others besides', async () => {
    await whileEightAreFetched('enforce', async (check) => {
      const ninth = check.check(receiver.url, 'documentationLink', caller);
      await expect(ninth).rejects.toMatchObject({ status: 429, code: 'too-many-requests' });
      expect(receiver.requests).toHaveLength(8);
      receiver.always(answer(200));
      await check.check(receiver.url, 'documentationLink', { clientId: 'another' });
    });
  });

  it('keeps no channel away where a warning is enough', async () => {
    await whileEightAreFetched('warn', async (check) => {
      await check.check(receiver.url, 'documentationLink', caller);
      expect(receiver.requests).toHaveLength(8);
    });
  });
});
