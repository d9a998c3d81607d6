import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { IdempotencyStore, LockAnswer, LockRequest } from '../../src/idempotency/idempotency-store.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { TestLedger } from '../support/ledger.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

const hour = 3_600_000;
const acquired: LockAnswer = { kind: 'acquired', takenOver: false };
const takenOver: LockAnswer = { kind: 'acquired', takenOver: true };

describe.each(stacks)('the idempotency store in the Postgres of the $name stack', (stack) => {
  let prepared: PreparedStack;
  let ledger: TestLedger;
  let store: IdempotencyStore;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    prepared = await stack.prepare();
    ledger = await TestLedger.open(prepared.settings);
    store = new PostgresIdempotencyStore(ledger.postgres);
  });
  afterAll(async () => {
    await ledger.close();
    await prepared.release();
  });

  const requestFor = (key: string, token: string): LockRequest => {
    return { key, token, ttlMs: hour, requestHash: null, mayTakeOver: true };
  };

  it('leaves a lock to a holder that seems dead while nobody has been alive for long: Postgres was out of reach', async () => {
    const [key, holder] = [`i9y:test:${randomUUID()}`, await ledger.startProcess()];
    expect(await store.acquire(requestFor(key, `${holder.id}/1`))).toEqual(acquired);
    await holder.die();
    const fresh = await ledger.startProcess();
    expect(await store.acquire(requestFor(key, `${fresh.id}/1`))).toEqual({
      kind: 'locked',
      holder: holder.id,
    });
    await fresh.witness();
    expect(await store.acquire(requestFor(key, `${fresh.id}/1`))).toEqual(takenOver);
  });

  it('gives a lock whose holder was forgotten to a caller that may take over', async () => {
    const key = `i9y:test:${randomUUID()}`;
    expect(await store.acquire(requestFor(key, 'forgotten/1'))).toEqual(acquired);
    expect(await store.acquire(requestFor(key, 'next/1'))).toEqual(takenOver);
  });

  it('sweeps away no more together than it is told, and none that had expired before', async () => {
    const expired = (count: number, ago: string) =>
      ledger.sql(
        `INSERT INTO idempotency_key (key, expires_at)
         SELECT 'i9y:test:${randomUUID()}/' || nr, now() - interval '${ago}' FROM generate_series(1, ${count}) nr`,
      );
    await store.sweep(0, 100_000);
    await expired(3, '1 s');
    await expired(2, '1 h');
    const since = Date.now() - 60_000;
    expect([await store.sweep(since, 2), await store.sweep(since, 2), await store.sweep(since, 2)]).toEqual([2, 1, 0]);
    expect(await store.sweep(0, 10)).toBe(2);
  });
});
