import type { SubscribedChannel } from '../subscriptions/subscription.js';

/** The fields of a subscription that decide what it gets. */
interface Deciding {
  channels: readonly SubscribedChannel[];
  /** ISO 8601, or null. */
  disabledAt: string | null;
}

/** A change of a subscription, as the audit log has it. */
export interface PastChange {
  /** Milliseconds since 1970. */
  at: number;
  /** The fields that differ. Null: it was made. */
  before: Partial<Deciding> | null;
  /** Whether that made it, or deleted it. */
  done?: 'created' | 'deleted' | null;
}

/** A subscription as it is, and what was changed since some time. Times are in milliseconds since 1970. */
export interface WithPast extends Deciding {
  /** The last time, where it was deleted and came back under its id. */
  createdAt: number;
  deletedAt: number | null;
  /** Oldest first. */
  changes: readonly PastChange[];
}

export interface Version extends Deciding {
  existence: 'later' | 'present' | 'deleted';
}

/**
 * A subscription as it was at a time since which its changes are known: each field as the first change after that found
 * it.
 */
export function versionAt(subscription: WithPast, ms: number): Version {
  const { createdAt, deletedAt, changes } = subscription;
  const later = changes.filter(({ at }) => at > ms).map(({ before }) => before ?? {});
  const { channels } = later.find((before) => before.channels !== undefined) ?? subscription;
  const { disabledAt } = later.find((before) => before.disabledAt !== undefined) ?? subscription;
  const isDeleted = deletedAt !== null && deletedAt <= ms;
  const existence = createdAt > ms ? existenceBefore(subscription, ms) : isDeleted ? 'deleted' : 'present';
  return { existence, channels: channels!, disabledAt: disabledAt! };
}

/** At a time before it was made the last time: what was deleted next was there. */
function existenceBefore({ changes }: WithPast, ms: number): 'later' | 'present' {
  const next = changes.find(({ at, done }) => at > ms && (done === 'created' || done === 'deleted'));
  return next?.done === 'deleted' ? 'present' : 'later';
}

/** When it was changed within this time, to the last one included. */
export function changesBetween({ createdAt, deletedAt, changes }: WithPast, fromMs: number, toMs: number): number[] {
  const all = [createdAt, ...changes.map(({ at }) => at), ...(deletedAt === null ? [] : [deletedAt])];
  return all.filter((at) => at > fromMs && at <= toMs);
}
