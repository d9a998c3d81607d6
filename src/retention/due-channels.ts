import { dayMs } from '../ledger/partitions.js';

export interface BodyDays {
  name: string;
  /** Null: as the setting says. */
  bodyRetentionDays: number | null;
}

/**
 * The channels whose bodies of a day are past their retention.
 * @param day in days since 1970, UTC
 * @param general of the channels that have none of their own; undefined: theirs are kept as long as their rows
 */
export const dueChannels = (
  channels: readonly BodyDays[],
  day: number,
  nowMs: number,
  general: number | undefined,
): string[] =>
  channels
    .filter(({ bodyRetentionDays }) => {
      const days = bodyRetentionDays ?? general;
      return days !== undefined && (day + 1 + days) * dayMs < nowMs;
    })
    .map(({ name }) => name);
