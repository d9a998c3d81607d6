import type { SubscribedChannel } from '../subscriptions/subscription.js';

/** The fields of a subscription that decide what it gets. */
interface Deciding {
  channels: readonly SubscribedChannel[];
  /** ISO 8601, or null. */
  disabledAt: string | null;
}

/** A change of a subscription, as the audit log has it: the fields that differ. Null: it was made, or deleted. */
export interface PastChange {
  /** Milliseconds since 1970. */
  at: number;
  before: Partial<Deciding> | null;
}

/** A subscription as it is, and what was changed since some time. Times are in milliseconds since 1970. */
export interface WithPast extends Deciding {
  createdAt: number;
  deletedAt: number | null;
  /** Oldest first. */
  changes: readonly PastChange[];
}

export interface Version extends Deciding {
  existence: 'later' | 'present' | 'deleted';
}

/** A subscription as it was at a time since which its changes are known: each field as the first change after that found it. */
export function versionAt(subscription: WithPast, ms: number): Version {
  const { createdAt, deletedAt, changes } = subscription;
  const later = changes.filter(({ at }) => at > ms).map(({ before }) => before ?? {});
  const { channels } = later.find((before) => before.channels !== undefined) ?? subscription;
  const { disabledAt } = later.find((before) => before.disabledAt !== undefined) ?? subscription;
  const existence = createdAt > ms ? 'later' : deletedAt !== null && deletedAt <= ms ? 'deleted' : 'present';
  return { existence, channels: channels!, disabledAt: disabledAt! };
}

/** When it was changed within this time, to the last one included. */
export function changesBetween({ createdAt, deletedAt, changes }: WithPast, fromMs: number, toMs: number): number[] {
  const all = [createdAt, ...changes.map(({ at }) => at), ...(deletedAt === null ? [] : [deletedAt])];
  return all.filter((at) => at > fromMs && at <= toMs);
}
