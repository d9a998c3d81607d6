import { textOfUuids, uuidsIn } from '../infra/uuid-text.js';
import { earlierId, laterId } from '../ledger/partitions.js';

/** Up to where a subscriber has fetched. */
export interface PullCursor {
  /** Notification id: everything up to it was fetched. */
  after: string;
  /** Those above it that were fetched as well, while others below them could still be committed. */
  seen: readonly string[];
}

/** Of so many it is remembered that they were fetched; more wait until nothing can be committed below them. */
export const mostSeen = 64;

/** Text that callers send back as it is. */
export const toCursor = ({ after, seen }: PullCursor): string => textOfUuids(after, ...seen);

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): PullCursor | undefined {
  const [after, ...seen] = uuidsIn(cursor);
  return after === undefined || seen.length > mostSeen ? undefined : { after, seen };
}

/** The result of one look. */
export interface FoundRange {
  /** In the order of their ids; none of them is in `seen` of the cursor. */
  found: readonly { id: string }[];
  /** Nothing else lies between the cursor and this id; with more behind it, it is that of the last one found. */
  searchedTo: string;
  /** Below this id nothing can be committed any more that was not visible to the look. */
  horizon: string;
}

/**
 * The part of a look that is handed out, and the cursor behind it. Nothing is skipped: the cursor never passes the
 * horizon by itself, and what lies above it is remembered one by one.
 */
export function advance(
  cursor: PullCursor,
  { found, searchedTo, horizon }: FoundRange,
): { count: number; next: PullCursor; isCut: boolean } {
  const stillSeen = cursor.seen.filter((id) => id > horizon);
  const safe = found.filter(({ id }) => id <= horizon).length;
  const count = Math.min(found.length, safe + mostSeen - stillSeen.length);
  const isCut = count < found.length;
  const upTo = isCut ? (found[count - 1]?.id ?? horizon) : searchedTo;
  const after = laterId(cursor.after, earlierId(horizon, upTo));
  const seen = [...cursor.seen, ...found.slice(0, count).map(({ id }) => id)].filter((id) => id > after);
  return { count, next: { after, seen }, isCut };
}
