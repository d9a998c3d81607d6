import { Batcher } from '../infra/batcher.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import { deadProcesses } from '../liveness/heartbeat.service.js';
import {
  holderOf,
  IdempotencyStore,
  keysBounds,
  type LockAnswer,
  type LockRequest,
  type Sealed,
} from './idempotency-store.js';

const wanted = rowsOf<LockRequest>('wanted', {
  key: ['text', (request) => request.key],
  token: ['text', (request) => request.token],
  request_hash: ['text', (request) => request.requestHash],
  ttl_ms: ['int', (request) => request.ttlMs],
  may_take_over: ['boolean', (request) => request.mayTakeOver],
});

/**
 * Locks keys that are free or expired, those the caller has locked already, and those of a holder that is dead, or was
 * forgotten since. A sealed key has no token.
 */
const acquireKeys = statement(
  'idempotency-acquire',
  `
    WITH wanted AS (SELECT * FROM ${wanted.from}),
    -- All parts of a statement read the same snapshot, so this is the row before the insert: tells a takeover from an expiry.
    before AS (
      SELECT k.key, k.expires_at > now() AND k.token <> w.token AS was_locked
      FROM idempotency_key k JOIN wanted w USING (key)
    ),
    acquired AS (
      INSERT INTO idempotency_key AS k (key, token, request_hash, expires_at)
      SELECT key, token, request_hash, now() + ttl_ms * interval '1 ms' FROM wanted ORDER BY key
      ON CONFLICT (key) DO UPDATE SET
        token = EXCLUDED.token, request_hash = EXCLUDED.request_hash, outcome = NULL, expires_at = EXCLUDED.expires_at
      WHERE k.expires_at <= now() OR k.token = EXCLUDED.token
        OR k.token IS NOT NULL
          AND EXISTS (SELECT FROM wanted w WHERE w.key = k.key AND w.may_take_over)
          AND NOT EXISTS (
            SELECT FROM process p WHERE p.id = split_part(k.token, '/', 1) AND p.id <> ALL (${deadProcesses})
          )
      RETURNING k.key
    )
    SELECT acquired.key, coalesce(before.was_locked, false) AS taken_over FROM acquired LEFT JOIN before USING (key)`,
);

const readKeys = statement(
  'idempotency-read',
  'SELECT key, token, request_hash, outcome FROM idempotency_key WHERE key = ANY ($keys::text[]) AND expires_at > now()',
);

interface LockChange {
  key: string;
  token: string;
  verb: 'seal' | 'extend' | 'release';
  ttlMs: number;
  outcome: string | null;
}

const changes = rowsOf<LockChange>('change', {
  key: ['text', (change) => change.key],
  token: ['text', (change) => change.token],
  verb: ['text', (change) => change.verb],
  ttl_ms: ['bigint', (change) => change.ttlMs],
  outcome: ['text', (change) => change.outcome],
});

const changeKeys = statement(
  'idempotency-change',
  `
    WITH change AS (SELECT * FROM ${changes.from}),
    released AS (
      DELETE FROM idempotency_key k USING change c
      WHERE k.key = c.key AND k.token = c.token AND k.expires_at > now() AND c.verb = 'release' RETURNING k.key, c.token
    ),
    kept AS (
      UPDATE idempotency_key k SET
        token = CASE WHEN c.verb = 'seal' THEN NULL ELSE k.token END,
        outcome = CASE WHEN c.verb = 'seal' THEN c.outcome::json END,
        expires_at = now() + c.ttl_ms * interval '1 ms'
      FROM change c
      WHERE k.key = c.key AND k.token = c.token AND k.expires_at > now() AND c.verb <> 'release' RETURNING k.key, c.token
    )
    SELECT key, token FROM released UNION ALL SELECT key, token FROM kept`,
);

/** Passes over a key that is just being locked anew: each waiting for the other could end in a deadlock. */
const sweepKeys = statement(
  'idempotency-sweep',
  `DELETE FROM idempotency_key WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM idempotency_key
     WHERE expires_at >= to_timestamp($since_ms::float8 / 1000) AND expires_at <= now() LIMIT $limit FOR UPDATE SKIP LOCKED
   ))`,
);

/** A text that Postgres refuses (a NUL character) fails alone, not the rest of its batch. */
const batching = { ...keysBounds, maxItems: 256, lingerMs: 1, isolate: isDataError };

/** Locks and seals in the ledger's database, where there is no Redis, or it cannot be used. */
export class PostgresIdempotencyStore extends IdempotencyStore {
  private readonly acquiring = new Batcher<LockRequest, LockAnswer>((batch) => this.acquireTogether(batch), batching);
  private readonly changing = new Batcher<LockChange, boolean>((batch) => this.changeTogether(batch), batching);
  private readonly reading = new Batcher<string, Sealed | undefined>((keys) => this.readTogether(keys), batching);

  constructor(private readonly postgres: Postgres) {
    super();
  }

  /** The heartbeat in the table `process` says which processes are alive. */
  async announce(): Promise<void> {}

  async withdraw(): Promise<void> {}

  async forget(): Promise<void> {}

  acquire(request: LockRequest): Promise<LockAnswer> {
    return this.acquiring.add(request);
  }

  extend(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.changing.add({ key, token, verb: 'extend', ttlMs, outcome: null });
  }

  seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean> {
    return this.changing.add({ key, token, verb: 'seal', ttlMs: keepMs, outcome: JSON.stringify(outcome) });
  }

  release(key: string, token: string): Promise<boolean> {
    return this.changing.add({ key, token, verb: 'release', ttlMs: 0, outcome: null });
  }

  /** The seal of a key, where it has one. */
  sealOf(key: string): Promise<Sealed | undefined> {
    return this.reading.add(key);
  }

  sweep(sinceMs: number, limit: number): Promise<number> {
    return this.postgres.affected(sweepKeys, { since_ms: sinceMs, limit });
  }

  private async acquireTogether(batch: LockRequest[]): Promise<LockAnswer[]> {
    // One statement may lock a key once: of several callers with the same key, the first asks and the others find it
    // locked.
    const first = new Map<string, LockRequest>();
    for (const request of batch) if (!first.has(request.key)) first.set(request.key, request);
    const requests = [...first.values()];
    const acquired = await this.postgres.query<{ key: string; taken_over: boolean }>(
      acquireKeys,
      wanted.bind(requests),
    );
    const answers = new Map<string, LockAnswer>(
      acquired.map((row) => [row.key, { kind: 'acquired', takenOver: row.taken_over }]),
    );
    const others = requests.filter(({ key }) => !answers.has(key)).map(({ key }) => key);
    const found = others.length > 0 ? await this.find(others) : new Map<string, LockAnswer>();
    return batch.map((request) => {
      const asked = first.get(request.key)!;
      const answer = answers.get(request.key);
      if (answer) return asked === request ? answer : { kind: 'locked', holder: holderOf(asked.token) };
      // Not found: it was locked when the first statement ran, and has been released since.
      return found.get(request.key) ?? { kind: 'locked', holder: null };
    });
  }

  private async readTogether(keys: string[]): Promise<(Sealed | undefined)[]> {
    const found = await this.find(keys);
    return keys.map((key) => {
      const answer = found.get(key);
      return answer?.kind === 'sealed' ? answer : undefined;
    });
  }

  private async find(keys: string[]): Promise<Map<string, LockAnswer>> {
    const rows = await this.postgres.query<{
      key: string;
      token: string | null;
      request_hash: string | null;
      outcome: unknown;
    }>(readKeys, { keys });
    return new Map(
      rows.map((row) => [
        row.key,
        row.token === null
          ? { kind: 'sealed', outcome: row.outcome, requestHash: row.request_hash }
          : { kind: 'locked', holder: holderOf(row.token) },
      ]),
    );
  }

  private async changeTogether(batch: LockChange[]): Promise<boolean[]> {
    // One statement changes a row once: of several calls for one lock, the one that ends it counts, not an extension.
    const decisive = new Map<string, LockChange>();
    for (const change of batch) {
      const id = `${change.key} ${change.token}`;
      if (change.verb !== 'extend' || !decisive.has(id)) decisive.set(id, change);
    }
    const rows = await this.postgres.query<{ key: string; token: string }>(
      changeKeys,
      changes.bind([...decisive.values()]),
    );
    const changed = new Set(rows.map((row) => `${row.key} ${row.token}`));
    return batch.map((change) => changed.has(`${change.key} ${change.token}`));
  }
}
