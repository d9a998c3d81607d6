import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readSettings, type Settings } from '../../src/config/settings.js';
import { entities } from '../../src/entities.js';
import { CreationRequests, type Exchange, type Reserve } from '../../src/request-keys/creation-requests.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { KeyReserved } from '../../src/ledger/created-once.js';
import { keyRingOf, newEntry } from '../../src/secrets/key-ring.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { createDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { plainCipher } from '../support/secrets.js';

/** As fastify gives it. */
const requestUnder = (key: string) =>
  ({
    request: { headers: { 'idempotency-key': key }, raw: { headersDistinct: { 'idempotency-key': [key] } } },
    reply: { header: () => {} },
  }) as unknown as Exchange;

describe('a request that creates something under a key', () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let settings: Settings;
  let postgres: Postgres;

  beforeAll(async () => {
    database = await createDatabase();
    settings = readSettings({ DATABASE_URL: database.url });
    postgres = await Postgres.open(settings, entities);
    await postgres.migrate();
  });
  afterAll(async () => {
    await postgres.close();
    await database.drop();
  });

  afterEach(() => vi.restoreAllMocks());

  const startProcess = (cipher = plainCipher) => new CreationRequests(postgres, cipher, { settings });
  const asked = (input: object) => ({ application: 'operator', operation: 'create-replay', input }) as const;
  /** The created thing has its id alone. */
  const create = (reserve: Reserve): Promise<string> =>
    postgres.transaction(async (query) => {
      const id = randomUUID();
      await reserve(query, id);
      return id;
    });

  const find = (id: string) => Promise.resolve(id);

  it('is carried out once where two processes begin with it at once, and both name what was created', async () => {
    const request = requestUnder(randomUUID());
    let begun = 0;
    const slowly = async (reserve: Reserve) => {
      begun += 1;
      await eventually(() => begun === 2, 'both to have begun');
      return create(reserve);
    };
    const processes = [startProcess(), startProcess()];
    const done = await Promise.all(processes.map((process) => process.carryOut(request, asked({}), slowly, find)));
    const [created] = done.flatMap((each) => (each.kind === 'created' ? [each.created] : []));
    expect(done.filter(({ kind }) => kind === 'created')).toHaveLength(1);
    expect(done).toContainEqual({ kind: 'replayed', found: created });
  });

  it('is the same with its members in another order, at any depth, and another one with another order of a list', async () => {
    const [request, process] = [requestUnder(randomUUID()), startProcess()];
    const channel = { channel: 'cases', filters: { kind: 'a', phase: 'b' } };
    const first = await process.carryOut(request, asked({ rate: 5, channels: [channel, 'other'] }), create, find);
    expect(first.kind).toBe('created');
    const reordered = { filters: { phase: 'b', kind: 'a' }, channel: 'cases' };
    const again = await startProcess().carryOut(
      request,
      asked({ channels: [reordered, 'other'], rate: 5 }),
      create,
      find,
    );
    expect(again.kind).toBe('replayed');
    for (const other of [
      { rate: 5, channels: ['other', channel] },
      { rate: 5, channels: [{ ...channel, filters: { kind: 'b', phase: 'a' } }, 'other'] },
    ])
      await expect(startProcess().carryOut(request, asked(other), create, find)).rejects.toMatchObject({
        code: 'idempotency-key-reused',
      });
  });

  it('leaves the key free where it fails', async () => {
    const [request, process] = [requestUnder(randomUUID()), startProcess()];
    const failing = (reserve: Reserve) =>
      postgres.transaction(async (query) => {
        await reserve(query, randomUUID());
        throw new Error('the disk is full');
      });
    await expect(process.carryOut(request, asked({}), failing, find)).rejects.toThrow('the disk is full');
    expect(await process.carryOut(request, asked({ other: true }), create, find)).toMatchObject({ kind: 'created' });
  });

  it('is told of what another process created while it was refused here for what came of that', async () => {
    const request = requestUnder(randomUUID());
    const refused = async () => {
      const { kind } = await startProcess().carryOut(request, asked({}), create, find);
      expect(kind).toBe('created');
      throw new Error('not so many any more');
    };
    expect(await startProcess().carryOut(request, asked({}), refused, find)).toMatchObject({ kind: 'replayed' });
  });

  it('with a secret in it is told to come again where this process lacks the key, and makes nothing twice', async () => {
    const [older, newer] = [newEntry(), newEntry()];
    const cipherWith = (...entries: string[]) => new SecretCipher(keyRingOf(entries, 'the test'));
    const [request, withSecret] = [requestUnder(randomUUID()), { ...asked({ secret: 'x' }), hasSecret: true }];
    const [here, elsewhere] = [startProcess(cipherWith(older)), startProcess(cipherWith(newer, older))];
    const unreadable = {
      status: 503,
      code: 'secret-unreadable',
      extra: { headers: { 'retry-after': '10' } },
    };
    const late = async (reserve: Reserve) => {
      // Another process carries it out meanwhile.
      expect(await elsewhere.carryOut(request, withSecret, create, find)).toMatchObject({ kind: 'created' });
      return create(reserve);
    };
    await expect(here.carryOut(request, withSecret, late, find)).rejects.toMatchObject(unreadable);
    const never = () => Promise.reject(new Error('carried out a second time'));
    await expect(here.carryOut(request, withSecret, never, find)).rejects.toMatchObject(unreadable);
    const withBoth = startProcess(cipherWith(older, newer));
    expect(await withBoth.carryOut(request, withSecret, never, find)).toMatchObject({ kind: 'replayed' });
    const other = { ...asked({ secret: 'y' }), hasSecret: true };
    await expect(withBoth.carryOut(request, other, never, find)).rejects.toMatchObject({
      code: 'idempotency-key-reused',
    });
  });

  it('is answered as while Postgres is away where that goes between the reservation by another process and the look at it', async () => {
    const away = new Error('Postgres is away');
    const reserved = () => {
      vi.spyOn(postgres, 'query').mockRejectedValueOnce(away);
      return Promise.reject(new KeyReserved());
    };
    const repeated = startProcess().carryOut(requestUnder(randomUUID()), asked({}), reserved, find);
    await expect(repeated).rejects.toBe(away);
  });

  it('is carried out anew when the time of its key is over', async () => {
    const [key, process] = [randomUUID(), startProcess()];
    const first = await process.carryOut(requestUnder(key), asked({}), create, find);
    await postgres.dataSource.query(`UPDATE once_key SET expires_at = now() WHERE key = $1`, [key]);
    const second = await process.carryOut(requestUnder(key), asked({ other: true }), create, find);
    expect([first.kind, second.kind]).toEqual(['created', 'created']);
    expect(await process.carryOut(requestUnder(key), asked({ other: true }), create, find)).toMatchObject({
      kind: 'replayed',
    });
  });

  it('is to be repeated where the key was reserved by another and cannot be found any more', async () => {
    const reserved = () => Promise.reject(new KeyReserved());
    await expect(startProcess().carryOut(requestUnder(randomUUID()), asked({}), reserved, find)).rejects.toMatchObject({
      code: 'idempotency-key-in-flight',
    });
  });
});
