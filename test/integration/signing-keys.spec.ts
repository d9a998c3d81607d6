import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { entities } from '../../src/entities.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { SigningKeys } from '../../src/subscriptions/signing-keys.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { keyRingOf, newEntry } from '../../src/secrets/key-ring.js';
import { rewriteSecrets } from '../../src/secrets/stored-secrets.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { embedded, type PreparedStack } from '../support/stacks.js';
import { plainCipher } from '../support/secrets.js';
import { subscriptionAllowance, subscriptionsService } from '../support/subscriptions-service.js';

const running = new AbortController().signal;

describe('the signing keys of a subscription', () => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  let here: ReturnType<typeof startProcess>;
  let other: ReturnType<typeof startProcess>;
  let id: string;

  beforeAll(async () => {
    prepared = await embedded.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), entities);
    await postgres.migrate();
    await makeMonthsAhead(postgres);
    here = startProcess();
    other = startProcess();
  });
  beforeEach(async () => {
    const input = { callbackUrl: 'http://receiver/', auth: '', channels: [], deliveryGuarantee: null };
    id = (await here.subscriptions.create('owner', input)).subscription.id;
  });
  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  /** The memory of a process, and the changes that it makes for all. */
  function startProcess(cipher = plainCipher) {
    const catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres, cipher);
    const subscriptions = subscriptionsService(catalogue, directory, postgres, new OperationalEvents(), cipher);
    const keys = new SigningKeys(catalogue, postgres, cipher, subscriptionAllowance(catalogue, directory));
    const inMemory = (): string[] => directory.find(id)!.signingKeys.map((key) => key.id);
    return { catalogue, subscriptions, keys, inMemory, directory };
  }

  const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);
  const stored = () =>
    sql<{ id: string; secret: string }>('SELECT * FROM signing_key WHERE subscription_id = $1', [id]);
  const rotate = (keyId: string, graceSeconds = 60) => here.keys.rotate(id, keyId, { graceSeconds });
  const create = async (scheme: 'v1' | 'v1a' = 'v1') => (await here.keys.create(id, { scheme })).key.id;
  /** As after its grace. */
  const endGrace = (keyId: string) =>
    sql(`UPDATE signing_key SET ends_at = now() - interval '1 s' WHERE id = $1`, [keyId]);

  it('are in the memory of every process as other changes are, the newest first', async () => {
    await other.catalogue.refresh();
    const [first, second] = [await create('v1'), await create('v1a')];
    expect(here.inMemory()).toEqual([second, first]);
    expect(other.inMemory()).toEqual([]);
    await other.catalogue.refresh();
    expect(other.inMemory()).toEqual([second, first]);
  });

  it('are all read by a process that starts', async () => {
    const keyId = await create();
    const started = startProcess();
    await started.catalogue.refresh();
    expect(started.inMemory()).toEqual([keyId]);
  });

  it('sign with the old one for its grace, and are erased when that is over', async () => {
    const old = await create();
    const { key, secret } = await rotate(old);
    expect(secret).toMatch(/^whsec_/);
    expect(here.inMemory()).toEqual([key.id, old]);
    const [, inItsGrace] = await here.keys.list(id);
    // The new one was made a moment after its grace began.
    const graceMs = inItsGrace!.endsAt!.getTime() - key.createdAt.getTime();
    expect(graceMs).toBeGreaterThan(50_000);
    expect(graceMs).toBeLessThanOrEqual(60_000);

    await here.keys.eraseEnded(running);
    expect(here.inMemory()).toEqual([key.id, old]);
    await endGrace(old);
    expect((await here.keys.list(id)).map((each) => each.id)).toEqual([key.id]);
    await here.keys.eraseEnded(running);
    expect(here.inMemory()).toEqual([key.id]);
    expect(await stored()).toMatchObject([{ id: key.id, secret }]);
    await other.catalogue.refresh();
    expect(other.inMemory()).toEqual([key.id]);
  });

  it('leave nothing behind where a key is rotated without grace, or ended', async () => {
    const { key } = await rotate(await create(), 0);
    expect(here.inMemory()).toEqual([key.id]);
    const { key: last } = await rotate(key.id, 60);
    await here.keys.end(id, key.id);
    await here.keys.end(id, last.id);
    expect(here.inMemory()).toEqual([]);
    expect(await stored()).toEqual([]);
    await expect(here.keys.end(id, last.id)).rejects.toMatchObject({ status: 404 });
  });

  it('are erased with their subscription', async () => {
    await create();
    await here.subscriptions.remove(id);
    expect(await stored()).toEqual([]);
    await expect(here.keys.create(id, { scheme: 'v1' })).rejects.toMatchObject({ status: 404 });
  });

  it('are at most five, and at most ten that were rotated', async () => {
    const tooMany = { status: 409, code: 'too-many-signing-keys' };
    let last = await create();
    for (let nr = 0; nr < 10; nr++) last = (await rotate(last)).key.id;
    const before = here.inMemory();
    await expect(rotate(last)).rejects.toMatchObject(tooMany);
    expect(here.inMemory()).toEqual(before);
    last = (await rotate(last, 0)).key.id;
    expect(here.inMemory()).toHaveLength(11);
    for (let nr = 0; nr < 4; nr++) await create();
    await expect(create()).rejects.toMatchObject(tooMany);
    await endGrace(before[1]!);
    await rotate(last);
  });

  it('are rotated once each: of two who rotate one together, one succeeds', async () => {
    const keyId = await create();
    const rotations = [here, other].map(({ keys }) => keys.rotate(id, keyId, { graceSeconds: 60 }));
    const outcomes = await Promise.allSettled(rotations);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = outcomes.find((outcome) => outcome.status === 'rejected');
    expect(refused?.reason).toMatchObject({ status: 409, code: 'signing-key-rotated' });
    expect(await stored()).toHaveLength(2);
  });

  it('are not those of another subscription', async () => {
    const keyId = await create();
    const input = { callbackUrl: 'http://receiver/', auth: '', channels: [], deliveryGuarantee: null };
    const { subscription } = await here.subscriptions.create('owner', input, { isSigned: true });
    await expect(here.keys.end(subscription.id, keyId)).rejects.toMatchObject({ status: 404 });
    expect(subscription.signingKeys).toHaveLength(1);
    expect(subscription.signingKeys[0]!.id).not.toBe(keyId);
    await expect(here.keys.rotate(id, randomUUID(), { graceSeconds: 0 })).rejects.toMatchObject({ status: 404 });
  });

  it('may be given', async () => {
    const { key, secret: shown } = await here.keys.create(id, { scheme: 'v1', secret: '/'.repeat(32) });
    expect(shown).toBeUndefined();
    expect(await stored()).toMatchObject([{ id: key.id, secret: `whsec_${'/'.repeat(32)}` }]);
  });

  it('are encrypted with the key ring, those of before as well, and are read by processes that have it alone', async () => {
    await here.keys.create(id, { scheme: 'v1' });
    const cipher = new SecretCipher(keyRingOf([newEntry()], 'test'));
    const encrypting = startProcess(cipher);
    await encrypting.keys.create(id, { scheme: 'v1a' });
    await rewriteSecrets(postgres, cipher, [''], () => {});
    for (const { secret } of await stored()) expect(secret).toMatch(/^enc:/);

    await encrypting.catalogue.refresh();
    const inMemory = encrypting.directory.find(id)!;
    expect(inMemory.signingKeys.map(({ object }) => object.type)).toEqual(['private', 'secret']);
    expect(inMemory.unreadable).toBeNull();
    const without = startProcess();
    await without.catalogue.refresh();
    expect(without.directory.find(id)).toMatchObject({ signingKeys: [], unreadable: expect.stringContaining('key') });
    for (const { id: keyId } of await without.keys.list(id)) await without.keys.end(id, keyId);
    expect(await stored()).toEqual([]);
  });
});
