import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { readSettings } from '../config/settings.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { plainCipher } from '../../test/support/secrets.js';
import { ApplicationDirectory } from './application-directory.service.js';

const row = (clientId: string, secret: string) => ({
  id: clientId,
  client_id: clientId,
  secret,
  scopes: [],
  is_superuser: false,
  is_deleted: false,
});
const [short, long] = ['x'.repeat(15), 'x'.repeat(16)];

describe('the applications at the start', () => {
  let warned: unknown[];

  beforeEach(() => {
    warned = [];
    const ignore = () => {};
    Logger.overrideLogger({ log: ignore, error: ignore, debug: ignore, warn: (event: unknown) => warned.push(event) });
  });

  afterEach(() => Logger.overrideLogger(false));

  async function start(secrets: string[], settings: Record<string, string> = {}): Promise<ApplicationDirectory> {
    const rows = secrets.map((secret, index) => row(`client-${index}`, secret));
    const postgres = {
      query: ({ name }: { name: string }) => Promise.resolve(name === 'catalogue-version' ? [{ version: '1' }] : rows),
    } as unknown as Postgres;
    const catalogue = new Catalogue(postgres);
    const directory = new ApplicationDirectory(catalogue, postgres, plainCipher, { settings: readSettings(settings) });
    await directory.onApplicationBootstrap();
    return directory;
  }

  it('have their short secrets counted in one warning, and go on working', async () => {
    const directory = await start([short, long, 'é', '', long], { SUPERUSER_SECRET: 'short' });
    expect(warned).toEqual([
      { event: 'applications.short-secrets', applications: 2, superuserSecret: true, minBytes: 16 },
    ]);
    expect(directory.find('client-0')?.key?.export().toString()).toBe(short);
  });

  it('are not warned about where every secret is long enough, by SECRET_MIN_BYTES', async () => {
    await start([long, long], { SUPERUSER_SECRET: long });
    await start([short], { SECRET_MIN_BYTES: '15' });
    expect(warned).toEqual([]);
  });
});
