import type { Query } from '../infra/postgres/postgres.js';
import type { Accepted, HandOut } from './ledger.service.js';
import * as statements from './statements.js';

/** Something that must happen once. */
export interface OnceKey {
  /** Empty for a channel's content, which is the same whoever publishes it. */
  application: string;
  operation: 'publish' | 'put' | 'deduplicate';
  key: string;
  requestHash: string | null;
  keepSeconds: number;
}

export interface AcceptedOnTerms extends Accepted {
  /** The request's key before the content's: it decides when both were taken. */
  keys: OnceKey[];
  /** Milliseconds since 1970. */
  notBefore: number | null;
  expiresAt: number | null;
}

export type Verdict =
  | { kind: 'accepted'; handedTo: 'queue' | 'later' | 'nobody' }
  /** A key was taken: nothing was written. */
  | { kind: 'met'; operation: OnceKey['operation']; resultId: string; requestHash: string | null };

export interface TermsAnswer {
  version: number;
  queuedAt: number;
  /** One per item, in order; empty when the version differs. */
  verdicts: Verdict[];
}

interface KeyRow {
  application: string;
  operation: OnceKey['operation'];
  key: string;
  result_id: string;
  request_hash: string | null;
}

/**
 * Runs the accepting statement and finds out, for those that did not happen, which key stood in the way. With more than one
 * key per item this needs a transaction: some may have been taken although others were not free.
 */
export async function acceptOnTerms(
  query: Query,
  version: number,
  batch: AcceptedOnTerms[],
  handOut: HandOut,
  leaseMs: number,
): Promise<TermsAnswer> {
  const [row] = await query<{
    version: string;
    now_ms: string;
    accepted: string[];
    expired: string[];
    scheduled: string[];
  }>(statements.acceptOnTerms, valuesOf(version, batch, handOut, leaseMs));
  const answer = { version: Number(row!.version), queuedAt: Number(row!.now_ms) };
  if (answer.version !== version) return { ...answer, verdicts: [] };
  const accepted = new Set(row!.accepted);
  const expired = new Set(row!.expired);
  const scheduled = new Set(row!.scheduled);
  const met = await findMet(
    query,
    batch.filter((item) => !accepted.has(item.id)),
  );
  const verdicts = batch.map((item): Verdict => {
    const obstacle = met.get(item.id);
    if (obstacle) return obstacle;
    const handedTo = expired.has(item.id) ? 'nobody' : scheduled.has(item.id) ? 'later' : 'queue';
    return { kind: 'accepted', handedTo };
  });
  return { ...answer, verdicts };
}

async function findMet(query: Query, refused: AcceptedOnTerms[]): Promise<Map<string, Verdict>> {
  const met = new Map<string, Verdict>();
  if (refused.length === 0) return met;
  const keys = refused.flatMap((item) => item.keys);
  const rows = await query<KeyRow>(statements.findKeys, [
    keys.map((key) => key.application),
    keys.map((key) => key.operation),
    keys.map((key) => key.key),
  ]);
  const found = new Map(rows.map((row) => [nameOf(row), row]));
  for (const item of refused) {
    const taken = item.keys.map((key) => found.get(nameOf(key))).find((row) => row && row.result_id !== item.id);
    // It was swept, or its transaction rolled back, between the two statements.
    if (!taken) throw new KeyVanished(`no key stands in the way of ${item.id} any more`);
    met.set(item.id, {
      kind: 'met',
      operation: taken.operation,
      resultId: taken.result_id,
      requestHash: taken.request_hash,
    });
    if (item.keys.length === 1) continue;
    if (taken.operation === 'deduplicate') await query(statements.redirectKeys, [item.id, taken.result_id]);
    else await query(statements.freeKeys, [item.id]);
  }
  return met;
}

/** What stood in the way has gone: to ask again helps. */
export class KeyVanished extends Error {}

const nameOf = ({ application, operation, key }: Pick<OnceKey, 'application' | 'operation' | 'key'>): string =>
  `${operation}\n${application}\n${key}`;

function valuesOf(version: number, batch: AcceptedOnTerms[], handOut: HandOut, leaseMs: number): unknown[] {
  const keys = batch.flatMap((item, index) => item.keys.map((key) => ({ ...key, nr: index + 1 })));
  const deliveries = batch.flatMap((item, index) => item.subscriptionIds.map((id) => ({ nr: index + 1, id })));
  return [
    version,
    batch.map((item) => item.id),
    batch.map((item) => item.channel),
    batch.map((item) => item.publisher),
    batch.map((item) => item.body),
    batch.map((item) => item.notBefore),
    batch.map((item) => item.expiresAt),
    keys.map((key) => key.nr),
    keys.map((key) => key.application),
    keys.map((key) => key.operation),
    keys.map((key) => key.key),
    keys.map((key) => key.requestHash),
    keys.map((key) => key.keepSeconds),
    deliveries.map((delivery) => delivery.nr),
    deliveries.map((delivery) => delivery.id),
    handOut.state,
    handOut.state === 'queued' ? leaseMs : handOut.delayMs,
    handOut.state === 'queued' ? handOut.owner : null,
  ];
}
