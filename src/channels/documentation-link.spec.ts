import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../config/config.module.js';
import { readSettings } from '../config/settings.js';
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
