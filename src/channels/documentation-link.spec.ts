import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../config/config.module.js';
import { readSettings } from '../config/settings.js';
import { answer, Receiver, reset, type Behaviour } from '../../test/support/receiver.js';
import { standStill } from '../../test/support/stand-still.js';
import { Outbound } from '../outbound/outbound.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';

describe('documentation that this machine has no means to fetch', () => {
  beforeEach(() => Logger.overrideLogger(false));
  afterEach(() => Logger.overrideLogger(true));

  const check = (mode: string) => {
    const settings = readSettings({ DOCUMENTATION_LINK_CHECK: mode });
    const outOfFiles = new Outbound(settings, (_name, _options, found) =>
      found(Object.assign(new Error('getaddrinfo EMFILE'), { code: 'EMFILE' }), ''),
    );
    const link = 'http://documentation.test/';
    return new DocumentationLinkCheck({ settings } as Config, outOfFiles).check(link, 'documentationLink');
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
    return new UnhurriedCheck({ settings }, new Outbound(settings)).check(receiver.url, 'documentationLink');
  };

  it('is judged by the answer that lay in the socket meanwhile', async () => {
    await expect(checkWhere(answer(200))).resolves.toBeUndefined();
  });

  it('does not have its channel refused where its server gave up', async () => {
    await expect(checkWhere(reset)).rejects.toMatchObject({ status: 503 });
  });
});
