import { mayHave } from '../digests/mark-filter.js';
import { markOf } from '../digests/marks.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { highestId, idBefore, laterId } from '../ledger/partitions.js';
import { digested, rangeEnd } from './find-fetched.js';

/** Asked of one statement: each is a page of Postgres. */
const mostDigests = 1000;
/** That may have deliveries of the subscription, searched together. Each is of 1024 notifications at most. */
const mostBlocks = 16;

/** The next search for the deliveries of a subscription. */
export interface Search {
  /** In order: behind a notification, up to another one. None: there is nothing of it up to `end`. */
  windows: { after: string; end: string }[];
  /** Up to this one nothing else is to be searched. */
  end: string;
}

interface KnownRow {
  first: string | null;
  last: string | null;
  next: string | null;
  blocks: { from: string; to: string }[];
}

/**
 * Digests say which blocks of notifications cannot have anything for a subscription: those are not read, so that a look
 * costs as much as there is for it, and not as much as there is for all others. The newest notifications, which have no
 * digest yet, are read in ranges.
 * @param horizon below it nothing can be committed any more
 * @param rangeRows deliveries, of whatever subscriptions, that are searched together where there is no digest
 */
export async function nextSearch(
  postgres: Postgres,
  {
    subscriptionId,
    after,
    horizon,
    rangeRows,
  }: Record<'subscriptionId' | 'after' | 'horizon', string> & { rangeRows: number },
): Promise<Search> {
  const range = async (from: string, to: string): Promise<Search> => {
    const [row] = await postgres.queryAside<{ notification_id: string }>(rangeEnd, {
      after: from,
      to,
      rows: rangeRows,
    });
    const end = row?.notification_id ?? to;
    return { windows: [{ after: from, end }], end };
  };
  const mark = mayHave(markOf('subscription', subscriptionId));
  const asked = { after, horizon, digests: mostDigests, blocks: mostBlocks };
  const { first, last, next, blocks } = (await postgres.queryAside<KnownRow>(digested(mark), asked))[0]!;
  if (first === null || last === null || after >= last) return range(after, highestId);
  const windows = blocks.map(({ from, to }) => ({ after: laterId(idBefore(from), after), end: to }));
  const beforeFirst = idBefore(first);
  if (after < beforeFirst) {
    const older = await range(after, beforeFirst);
    if (older.end !== beforeFirst) return older;
    windows.unshift(...older.windows);
  }
  if (blocks.length === mostBlocks) return { windows, end: blocks.at(-1)!.to };
  if (next !== null && next <= last) return { windows, end: idBefore(next) };
  const newer = await range(last, highestId);
  return { windows: [...windows, ...newer.windows], end: newer.end };
}
