import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { ApplicationDirectory } from '../../src/auth/application-directory.service.js';
import { ApplicationEntity } from '../../src/auth/application.entity.js';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { newEntry } from '../../src/secrets/key-ring.js';
import { openCipher, openSecrets } from '../../src/secrets/open-secrets.js';
import type { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { plain, rewriteSecrets, sampleByKey } from '../../src/secrets/stored-secrets.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { SubscriptionEntity } from '../../src/subscriptions/subscription.entity.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { subscriptionsService } from '../support/subscriptions-service.js';

Logger.overrideLogger(false);

const [first, second, third] = [newEntry(), newEntry(), newEntry()];
const idOf = (entry: string) => entry.split(':')[0]!;

describe('secrets in the database', () => {
  let database: TestDatabase;
  let postgres: Postgres;
  let events: Record<string, unknown>[];
  const note = (event: object) => void events.push({ ...event });
  const logger = { log: note, warn: note };

  beforeAll(async () => {
    database = await createDatabase();
    postgres = await Postgres.open(settingsWith(), [ApplicationEntity, SubscriptionEntity]);
    await postgres.migrate();
    await makeMonthsAhead(postgres);
  });
  beforeEach(async () => {
    events = [];
    await postgres.dataSource.query('TRUNCATE application, subscription CASCADE');
  });
  afterAll(async () => {
    await postgres.close();
    await database.drop();
  });

  const settingsWith = (...keys: string[]) =>
    readSettings({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: '4', SECRET_KEYS: keys.join(',') });
  const openWith = (...keys: string[]) => openSecrets(settingsWith(...keys), postgres, logger);

  /** The services of one process that has this cipher. */
  async function processWith(cipher: SecretCipher) {
    const config = { settings: settingsWith() };
    const catalogue = new Catalogue(postgres);
    const applications = new ApplicationDirectory(catalogue, postgres, cipher, config);
    const directory = new SubscriptionDirectory(catalogue, postgres, cipher);
    await catalogue.refresh();
    return {
      catalogue,
      applications,
      directory,
      service: new ApplicationsService(catalogue, postgres, cipher, config),
      subscriptions: subscriptionsService(catalogue, directory, postgres, new OperationalEvents(), cipher),
    };
  }

  const keyOf = (directory: ApplicationDirectory, clientId: string) =>
    directory.find(clientId)?.key?.export().toString('utf8');
  const stored = async () =>
    (await postgres.dataSource.query(
      `SELECT secret AS text FROM application UNION ALL SELECT auth FROM subscription
       UNION ALL SELECT credentials FROM subscription WHERE credentials IS NOT NULL`,
    )) as { text: string }[];
  const keysInUse = async () => [...new Set((await sampleByKey(postgres)).map(({ keyId }) => keyId))];

  const zgw = { kind: 'zgw', clientId: 'heraut', secret: 'zgw secret', userId: '', userRepresentation: '' } as const;
  const subscription = (auth: string) => ({
    callbackUrl: 'http://receiver/',
    auth,
    channels: [],
    deliveryGuarantee: null,
    credentials: { authorization: zgw },
  });

  /** As an installation without keys writes them. */
  async function writePlain(count: number): Promise<void> {
    await postgres.dataSource.query(
      `INSERT INTO application (id, client_id, label, secret, scopes, is_superuser, version)
       SELECT gen_random_uuid(), 'client-' || nr, '', 'plain secret ' || nr, '{}', false, 1 FROM generate_series(1, $1) nr`,
      [count],
    );
    await postgres.dataSource.query(
      `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
       SELECT gen_random_uuid(), 'client-' || nr, 'http://receiver/', 'Bearer plain ' || nr, '[]', 1 FROM generate_series(1, $1) nr`,
      [count],
    );
  }

  it('are written encrypted and read by every process with the key, and deleted ones are not kept', async () => {
    const [writer, reader] = [
      await processWith(await openWith(first)),
      await processWith(await openWith(second, first)),
    ];
    const made = await writer.service.create({ label: '', clientId: 'client', scopes: [], isSuperuser: false });
    const { id } = (await writer.subscriptions.create('client', subscription('Bearer of-the-receiver'))).subscription;
    await reader.catalogue.refresh();
    expect(keyOf(reader.applications, 'client')).toBe(made.secret);
    expect(reader.directory.find(id)).toMatchObject({
      auth: 'Bearer of-the-receiver',
      credentials: { kind: 'zgw', secret: 'zgw secret' },
      unreadable: null,
    });
    const texts = (await stored()).map(({ text }) => text);
    expect(texts).toHaveLength(3);
    expect(texts.filter((text) => !text.startsWith(`enc:${idOf(first)}:`))).toEqual([]);
    await reader.subscriptions.update(id, { auth: 'Bearer changed' });
    await reader.service.update(made.application.id, { secret: 'changed' });
    await writer.catalogue.refresh();
    expect(writer.directory.find(id)?.unreadable).toMatch(`the key ${idOf(second)}, which is not in the key ring`);
    expect(writer.applications.find('client')).toMatchObject({ key: undefined, isUnreadable: true });
    expect(reader.applications.find('client')).not.toHaveProperty('isUnreadable');
    await reader.service.remove(made.application.id);
    await reader.subscriptions.remove(id);
    expect((await stored()).map(({ text }) => text)).toEqual(['', '']);
  });

  it('stay readable without keys, which one warning says where there is a dispatcher', async () => {
    await writePlain(1);
    await openWith();
    await openSecrets({ ...settingsWith(), ROLES: ['api'] }, postgres, logger);
    expect(events.map(({ event }) => event)).toEqual(['secrets.not-encrypted']);
    expect((await stored()).map(({ text }) => text).sort()).toEqual(['Bearer plain 1', 'plain secret 1']);
  });

  it('are encrypted at the next start with a key, by several processes at once, each row once', async () => {
    await writePlain(1200);
    const ciphers = await Promise.all([openWith(first), openWith(first), openWith(first)]);
    expect(await keysInUse()).toEqual([idOf(first)]);
    expect((await stored()).filter(({ text }) => !text.startsWith('enc:'))).toEqual([]);
    const encrypted = events.filter(({ event }) => event === 'secrets.encrypted');
    const total = encrypted.reduce((sum, { count }) => sum + Number(count), 0);
    expect(total).toBe(2400);
    const { applications, directory } = await processWith(ciphers[0]!);
    expect(keyOf(applications, 'client-1200')).toBe('plain secret 1200');
    expect(directory.list().map(({ auth, ownerClientId }) => `${ownerClientId} ${auth}`)).toContain(
      'client-7 Bearer plain 7',
    );
    events = [];
    await openWith(first);
    expect(events).toEqual([]);
  });

  it('that look encrypted without being it stay what they are', async () => {
    const { subscriptions } = await processWith(await openCipher(settingsWith(), postgres));
    const { id } = (await subscriptions.create('client', subscription('enc:stranger:AAAA'))).subscription;
    const { directory } = await processWith(await openWith(first));
    expect(directory.find(id)?.auth).toBe('enc:stranger:AAAA');
    expect((await stored()).filter(({ text }) => !text.startsWith(`enc:${idOf(first)}:`))).toEqual([]);
  });

  it('are refused at the start without their keys, by their ids, and nothing is changed', async () => {
    const { subscriptions } = await processWith(await openWith(first));
    await subscriptions.create('client', subscription('Bearer one'));
    const { service } = await processWith(await openWith(second, first));
    await service.create({ label: '', clientId: 'client', scopes: [], isSuperuser: false });
    await postgres.dataSource.query(`UPDATE subscription SET callback_url = callback_url`);
    await writePlain(1);
    const before = await stored();
    const ids = new RegExp(`under the same ids: (${idOf(first)}, ${idOf(second)}|${idOf(second)}, ${idOf(first)})\\.`);
    for (const keys of [[third], []]) await expect(openWith(...keys)).rejects.toThrow(ids);
    // The same id, another key.
    const wrong = [`${idOf(first)}:${third.split(':')[1]}`, second];
    await expect(openWith(...wrong)).rejects.toThrow(`under the same ids: ${idOf(first)}. Nothing was changed.`);
    expect(await stored()).toEqual(before);
  });

  it('are rewritten with the first key while processes change them, and nothing is lost', async () => {
    await writePlain(700);
    const { subscriptions, service } = await processWith(await openWith(first));
    const { id } = (await subscriptions.create('client', subscription('Bearer 0'))).subscription;
    await writePlain(0);
    const cipher = await openCipher(settingsWith(second, first), postgres);
    const other = await processWith(cipher);
    let isRotating = true;
    const changing = (async () => {
      for (let nr = 1; isRotating || nr === 1; nr++) await other.subscriptions.update(id, { auth: `Bearer ${nr}` });
      await service.create({ label: '', clientId: 'late', scopes: [], isSuperuser: false, secret: 'late secret' });
    })();
    await rewriteSecrets(postgres, cipher, [plain, idOf(first)], () => {});
    isRotating = false;
    await changing;
    // A process that had not got the new key yet has written once more: the next run finds that.
    expect(await keysInUse()).toEqual([idOf(first), idOf(second)].sort());
    await rewriteSecrets(postgres, cipher, [plain, idOf(first)], () => {});
    expect(await keysInUse()).toEqual([idOf(second)]);
    const { applications, directory } = await processWith(await openWith(second));
    expect(keyOf(applications, 'late')).toBe('late secret');
    expect(keyOf(applications, 'client-700')).toBe('plain secret 700');
    expect(directory.find(id)?.auth).toBe(other.directory.find(id)?.auth);
    expect(directory.find(id)?.credentials).toMatchObject({ kind: 'zgw', secret: 'zgw secret' });
  });

  it('can be replaced where they cannot be decrypted', async () => {
    const { subscriptions } = await processWith(await openWith(first));
    const { id } = (await subscriptions.create('client', subscription('Bearer one'))).subscription;
    const cipher = await openWith(second, first);
    const other = await processWith(cipher);
    await other.catalogue.change((manager, version) =>
      manager.query(`UPDATE subscription SET credentials = 'enc:lost:AAAA', version = $1`, [version]),
    );
    expect(other.directory.find(id)).toMatchObject({ unreadable: expect.stringContaining('the key lost') });
    await expect(other.subscriptions.setCredentials(id, { tls: null })).rejects.toMatchObject({
      code: 'credentials-unreadable',
    });
    const whole = { authorization: { kind: 'verbatim' }, tls: null, headers: null, auth: 'Bearer new' } as const;
    expect(await other.subscriptions.setCredentials(id, whole)).toMatchObject({ auth: 'Bearer new', unreadable: null });
  });
});
