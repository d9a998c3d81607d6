import { Batcher } from '../infra/batcher.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';
import type { Postgres, Statement } from '../infra/postgres/postgres.js';
import { IdempotencyStore, type Acquired, type Claim } from './idempotency-store.js';

/** Free, expired and orphaned keys are taken, and those the caller has already; of an orphan's owner the heartbeat in `process` has ended. */
const acquireKeys: Statement = {
  name: 'idempotency-acquire',
  text: `
    WITH wanted AS (
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::boolean[])
        AS w (key, owner, request_hash, ttl_ms, may_take_over)
    ),
    -- Read before the insert writes, as every part of one statement: tells a takeover from an expiry.
    before AS (
      SELECT k.key, k.expires_at > now() AND k.owner <> w.owner AS was_locked
      FROM idempotency_key k JOIN wanted w USING (key)
    ),
    taken AS (
      INSERT INTO idempotency_key AS k (key, owner, request_hash, expires_at)
      SELECT key, owner, request_hash, now() + ttl_ms * interval '1 ms' FROM wanted ORDER BY key
      ON CONFLICT (key) DO UPDATE SET
        owner = EXCLUDED.owner, request_hash = EXCLUDED.request_hash, outcome = NULL, expires_at = EXCLUDED.expires_at
      WHERE k.expires_at <= now() OR k.owner = EXCLUDED.owner
        OR k.owner IS NOT NULL
          AND EXISTS (SELECT FROM wanted w WHERE w.key = k.key AND w.may_take_over)
          AND NOT EXISTS (SELECT FROM process p WHERE p.id = split_part(k.owner, '/', 1) AND p.expires_at > now())
      RETURNING k.key
    )
    SELECT taken.key, coalesce(before.was_locked, false) AS taken_over FROM taken LEFT JOIN before USING (key)`,
};

const readKeys: Statement = {
  name: 'idempotency-read',
  text: 'SELECT key, owner, request_hash, outcome FROM idempotency_key WHERE key = ANY ($1::text[]) AND expires_at > now()',
};

const leaveKeys: Statement = {
  name: 'idempotency-leave',
  text: `
    WITH leaving AS (
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
        AS l (key, token, verb, ttl_ms, outcome)
    ),
    released AS (
      DELETE FROM idempotency_key k USING leaving l
      WHERE k.key = l.key AND k.owner = l.token AND k.expires_at > now() AND l.verb = 'release' RETURNING k.key, l.token
    ),
    kept AS (
      UPDATE idempotency_key k SET
        owner = CASE WHEN l.verb = 'seal' THEN NULL ELSE k.owner END,
        outcome = CASE WHEN l.verb = 'seal' THEN l.outcome::json END,
        expires_at = now() + l.ttl_ms * interval '1 ms'
      FROM leaving l
      WHERE k.key = l.key AND k.owner = l.token AND k.expires_at > now() AND l.verb <> 'release' RETURNING k.key, l.token
    )
    SELECT key, token FROM released UNION ALL SELECT key, token FROM kept`,
};

const sweepKeys: Statement = {
  name: 'idempotency-sweep',
  text: 'DELETE FROM idempotency_key WHERE expires_at <= now()',
};

interface Leave {
  key: string;
  token: string;
  verb: 'seal' | 'extend' | 'release';
  ttlMs: number;
  outcome: string | null;
}

/** A text that Postgres refuses (a NUL character) hurts nobody else in its batch. */
const batching = { maxItems: 256, lingerMs: 1, isolate: isDataError };

/** Locks and seals in the ledger's database, where there is no Redis. */
export class PostgresIdempotencyStore extends IdempotencyStore {
  private readonly acquiring = new Batcher<Claim, Acquired>((batch) => this.acquireTogether(batch), batching);
  private readonly leaving = new Batcher<Leave, boolean>((batch) => this.leaveTogether(batch), batching);

  constructor(private readonly postgres: Postgres) {
    super();
  }

  /** The heartbeat in the table `process` says who is alive. */
  async live(): Promise<void> {}

  async leave(): Promise<void> {}

  acquire(claim: Claim): Promise<Acquired> {
    return this.acquiring.add(claim);
  }

  extend(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.leaving.add({ key, token, verb: 'extend', ttlMs, outcome: null });
  }

  seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean> {
    return this.leaving.add({ key, token, verb: 'seal', ttlMs: keepMs, outcome: JSON.stringify(outcome) });
  }

  release(key: string, token: string): Promise<boolean> {
    return this.leaving.add({ key, token, verb: 'release', ttlMs: 0, outcome: null });
  }

  async sweep(): Promise<void> {
    await this.postgres.query(sweepKeys, []);
  }

  private async acquireTogether(batch: Claim[]): Promise<Acquired[]> {
    // One statement may touch a key once: of several who want it, the first asks and the others find it locked.
    const first = new Map<string, Claim>();
    for (const claim of batch) if (!first.has(claim.key)) first.set(claim.key, claim);
    const claims = [...first.values()];
    const taken = await this.postgres.query<{ key: string; taken_over: boolean }>(acquireKeys, [
      claims.map((claim) => claim.key),
      claims.map((claim) => claim.token),
      claims.map((claim) => claim.requestHash),
      claims.map((claim) => claim.ttlMs),
      claims.map((claim) => claim.mayTakeOver),
    ]);
    const answers = new Map<string, Acquired>(
      taken.map((row) => [row.key, { kind: 'acquired', takenOver: row.taken_over }]),
    );
    const others = claims.filter((claim) => !answers.has(claim.key)).map((claim) => claim.key);
    const found = others.length > 0 ? await this.find(others) : new Map<string, Acquired>();
    return batch.map((claim) => {
      const mine = first.get(claim.key) === claim ? answers.get(claim.key) : undefined;
      // Not found: it was locked a moment ago and has just left.
      return mine ?? found.get(claim.key) ?? { kind: 'locked' };
    });
  }

  private async find(keys: string[]): Promise<Map<string, Acquired>> {
    const rows = await this.postgres.query<{
      key: string;
      owner: string | null;
      request_hash: string | null;
      outcome: unknown;
    }>(readKeys, [keys]);
    return new Map(
      rows.map((row) => [
        row.key,
        row.owner === null
          ? { kind: 'sealed', outcome: row.outcome, requestHash: row.request_hash }
          : { kind: 'locked' },
      ]),
    );
  }

  private async leaveTogether(batch: Leave[]): Promise<boolean[]> {
    // One statement changes a row once: of one owner's calls the one that ends the lock counts, not an extension beside it.
    const decisive = new Map<string, Leave>();
    for (const leave of batch) {
      const id = `${leave.key} ${leave.token}`;
      if (leave.verb !== 'extend' || !decisive.has(id)) decisive.set(id, leave);
    }
    const leaves = [...decisive.values()];
    const rows = await this.postgres.query<{ key: string; token: string }>(leaveKeys, [
      leaves.map((leave) => leave.key),
      leaves.map((leave) => leave.token),
      leaves.map((leave) => leave.verb),
      leaves.map((leave) => leave.ttlMs),
      leaves.map((leave) => leave.outcome),
    ]);
    const left = new Set(rows.map((row) => `${row.key} ${row.token}`));
    return batch.map((leave) => left.has(`${leave.key} ${leave.token}`));
  }
}
