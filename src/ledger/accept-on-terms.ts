import type { Query, Row } from '../infra/postgres/postgres.js';
import type { Accepted, HandOut } from './accepted.js';
import * as statements from './terms-statements.js';

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
  | {
      kind: 'met';
      operation: OnceKey['operation'];
      resultId: string;
      requestHash: string | null;
      /** The request that took it repeated content of `resultId`. */
      isDuplicate: boolean;
    }
  /** A key was taken, but by whom cannot be told any more: nothing was written, and to ask again helps. */
  | { kind: 'again' };

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
  is_duplicate: boolean;
}

/**
 * Runs the accepting statement and finds out, for those that did not happen, which key stood in the way. Where an item has
 * more than one key this needs a transaction: some may have been taken although others were not free.
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
    refused: string[];
    expired: string[];
    scheduled: string[];
  }>(statements.acceptOnTerms, valuesOf(version, batch, handOut, leaseMs));
  const answer = { version: Number(row!.version), queuedAt: Number(row!.now_ms) };
  if (answer.version !== version) return { ...answer, verdicts: [] };
  const [refused, expired, scheduled] = [new Set(row!.refused), new Set(row!.expired), new Set(row!.scheduled)];
  const met = await findMet(
    query,
    batch.filter((item) => refused.has(item.id)),
  );
  const verdicts = batch.map(({ id }): Verdict => {
    if (refused.has(id)) return met.get(id)!;
    return { kind: 'accepted', handedTo: expired.has(id) ? 'nobody' : scheduled.has(id) ? 'later' : 'queue' };
  });
  return { ...answer, verdicts };
}

async function findMet(query: Query, refused: AcceptedOnTerms[]): Promise<Map<string, Verdict>> {
  const met = new Map<string, Verdict>();
  if (refused.length === 0) return met;
  const rows = await query<KeyRow & Row>(statements.findKeys, columnsOf(refused.flatMap((item) => item.keys)));
  const found = new Map(rows.map((row) => [nameOf(row), row]));
  const toRedirect: { key: OnceKey; resultId: string }[] = [];
  const toFree: OnceKey[] = [];
  for (const { id, keys } of refused) {
    const taken = keys.map((key) => ({ key, row: found.get(nameOf(key)) }));
    const own = taken.filter(({ row }) => row?.result_id === id).map(({ key }) => key);
    // None when it was swept, or given up by who had it, between the two statements.
    const obstacle = taken.map(({ row }) => row).find((row) => row && row.result_id !== id);
    met.set(id, verdictOn(obstacle));
    if (obstacle?.operation !== 'deduplicate') toFree.push(...own);
    else toRedirect.push(...own.map((key) => ({ key, resultId: obstacle.result_id })));
  }
  if (toFree.length > 0) await query(statements.freeKeys, columnsOf(toFree));
  if (toRedirect.length > 0) {
    const keys = toRedirect.map(({ key }) => key);
    await query(statements.redirectKeys, [...columnsOf(keys), toRedirect.map(({ resultId }) => resultId)]);
  }
  return met;
}

function verdictOn(obstacle: KeyRow | undefined): Verdict {
  if (!obstacle) return { kind: 'again' };
  const { operation, result_id: resultId, request_hash: requestHash, is_duplicate: isDuplicate } = obstacle;
  return { kind: 'met', operation, resultId, requestHash, isDuplicate };
}

const nameOf = ({ application, operation, key }: Pick<OnceKey, 'application' | 'operation' | 'key'>): string =>
  `${operation}\n${application}\n${key}`;

const columnsOf = (keys: OnceKey[]): string[][] => [
  keys.map((key) => key.application),
  keys.map((key) => key.operation),
  keys.map((key) => key.key),
];

function valuesOf(version: number, batch: AcceptedOnTerms[], handOut: HandOut, leaseMs: number): unknown[] {
  const keys = batch.flatMap((item, index) => item.keys.map((key) => ({ ...key, nr: index + 1 })));
  const deliveries = batch.flatMap((item, index) => item.subscriptionIds.map((id) => ({ nr: index + 1, id })));
  return [
    version,
    batch.map((item) => item.id),
    batch.map((item) => item.channel),
    batch.map((item) => item.publisher),
    batch.map((item) => item.body),
    batch.map((item) => item.notBefore ?? -Infinity),
    batch.map((item) => item.expiresAt ?? Infinity),
    keys.map((key) => key.nr),
    ...columnsOf(keys),
    keys.map((key) => key.requestHash),
    keys.map((key) => key.keepSeconds),
    deliveries.map((delivery) => delivery.nr),
    deliveries.map((delivery) => delivery.id),
    handOut.state,
    handOut.state === 'queued' ? leaseMs : handOut.delayMs,
    handOut.state === 'queued' ? handOut.owner : null,
  ];
}
