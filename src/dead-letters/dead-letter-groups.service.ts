import { Injectable } from '@nestjs/common';
import type { ErrorClass } from '../deliveries/error-class.js';
import { isMissingTable } from '../infra/postgres/postgres-errors.js';
import { readAside } from '../infra/postgres/read-aside.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { readDays } from '../ledger/days.js';
import { deadStates } from '../ledger/delivery.js';
import { dayMs, dayOfId, highestId, lowestId, timeOfId } from '../ledger/partitions.js';
import type { DeadState } from '../operational-events/operational-events.service.js';
import { findHeads, walkHeads, walkHeadsOfChannel, type HeadRow, type WalkedRow } from './find-groups.js';

/** Narrows the groups. */
export interface Sought {
  subscriptionId?: string;
  channel?: string;
  state?: DeadState;
  errorClass?: ErrorClass;
  replayId?: string;
  /** The lowest ids of a time: not before the first, and before the second. No notification has either. */
  from?: string;
  before?: string;
}

/** Dead letters of one subscription that ended in one state, of one kind of error. */
export interface DeadLetterGroup {
  subscriptionId: string;
  state: DeadState;
  errorClass: ErrorClass;
  count: number;
  /** Not all that it may have was looked at. */
  isAtLeast: boolean;
  /** Ids of notifications. */
  oldest: string;
  newest: string;
  /** When the last one of them ended. */
  lastEndedAt: Date;
  /** Of the newest. */
  lastStatus: number | null;
  lastError: string | null;
}

export interface FoundGroups {
  /** Those with most dead letters first. */
  groups: DeadLetterGroup[];
  /** Milliseconds since 1970: only what was accepted from then on was looked for; undefined: everything was. */
  searchedTo: number | undefined;
  isComplete: boolean;
}

/** How much one call looks at. */
interface GroupLimits {
  /** Dead letters. */
  rows: number;
  /** The same, where the notification of each has to be looked up. */
  rowsOfChannel: number;
  /** Subscriptions with dead letters, each counted for every day and state in which it has some. */
  heads: number;
  ms: number;
}
const usual: GroupLimits = { rows: 200_000, rowsOfChannel: 40_000, heads: 5000, ms: 1000 };

/** Rows of one statement. */
const together = 20_000;
/**
 * Of each subscription, day and state in the first round; each round after it ten times as many: the small groups are
 * counted first.
 */
const firstRound = 100;
/** A transaction takes on no further statement after this time: embedded there is one connection for everything. */
const transactionMs = 25;

/** The dead letters of one subscription, of a day and in one state. */
interface Head {
  day: number;
  subscriptionId: string;
  state: DeadState;
  /** Older ones than this were not looked at yet; undefined: there are none. */
  before: string | undefined;
}

/**
 * Counts dead letters by what they died of. However many there are, it looks at a limited number, at first at some of
 * each subscription.
 */
@Injectable()
export class DeadLetterGroups {
  constructor(private readonly postgres: Postgres) {}

  async find(sought: Sought, limits = usual): Promise<FoundGroups> {
    const { from = lowestId, before = highestId } = sought;
    // Those that are away as well: an operator is to know of what a replay can still send.
    const days = await readDays(this.postgres, { first: dayOfId(from), last: dayOfId(before) });
    try {
      return await this.findOn(
        days.map(({ day }) => day),
        sought,
        limits,
      );
    } catch (error) {
      if (!isMissingTable(error)) throw error;
      // A day was dropped meanwhile: the next look does not find it.
      return this.find(sought, limits);
    }
  }

  private async findOn(days: number[], sought: Sought, limits: GroupLimits): Promise<FoundGroups> {
    const giveUpAt = performance.now() + limits.ms;
    const isLate = () => performance.now() > giveUpAt;
    const { heads, searchedTo } = await this.heads(days.reverse(), sought, limits.heads, isLate);
    const found = new Map<string, DeadLetterGroup>();
    let left = sought.channel === undefined ? limits.rows : limits.rowsOfChannel;
    for (let each = firstRound; left > 0 && !isLate(); each = Math.min(10 * each, together)) {
      const open = heads.filter((head) => head.before !== undefined);
      if (open.length === 0) break;
      await this.inShortTransactions(batchesOf(open, Math.floor(together / each)), async (query, batch) => {
        if (left <= 0 || isLate()) return false;
        const most = Math.min(each, Math.max(1, Math.floor(left / batch.length)));
        left -= await this.walk(query, batch, sought, most, found);
        return true;
      });
    }
    const unfinished = new Set(heads.filter((head) => head.before !== undefined).map(ownerOf));
    const isCut = searchedTo !== undefined;
    const groups = [...found.values()]
      .filter(({ errorClass }) => sought.errorClass === undefined || errorClass === sought.errorClass)
      .map((group) => ({ ...group, isAtLeast: isCut || unfinished.has(ownerOf(group)) }))
      .sort((one, other) => other.count - one.count || (one.newest < other.newest ? 1 : -1));
    return { groups, searchedTo, isComplete: !isCut && unfinished.size === 0 };
  }

  /** @param days the newest first */
  private async heads(
    days: readonly number[],
    { subscriptionId, state, before = highestId }: Sought,
    most: number,
    isLate: () => boolean,
  ): Promise<{ heads: Head[]; searchedTo: number | undefined }> {
    const isSought = (each: DeadState) => state === undefined || each === state;
    if (subscriptionId !== undefined) {
      const states = deadStates.filter(isSought);
      const heads = days.flatMap((day) => states.map((each) => ({ day, subscriptionId, state: each, before })));
      return { heads, searchedTo: undefined };
    }
    const heads: Head[] = [];
    let left = most;
    let reached: number | undefined;
    await this.inShortTransactions(days, async (query, day) => {
      if (isLate()) return false;
      const rows = await query<HeadRow>(findHeads(day), { most: left });
      for (const row of rows)
        if (isSought(row.state)) heads.push({ day, subscriptionId: row.subscription_id, state: row.state, before });
      left -= rows.length;
      if (left === 0) return false;
      reached = day;
      return true;
    });
    if (reached === days.at(-1)) return { heads, searchedTo: undefined };
    // A day of which not all subscriptions are known was not searched.
    const searchedTo = reached === undefined ? Math.min(timeOfId(before), (days[0]! + 1) * dayMs) : reached * dayMs;
    return { heads, searchedTo };
  }

  /** @returns how many rows it looked at */
  private async walk(
    query: Query,
    heads: readonly Head[],
    { channel, replayId, from = lowestId }: Sought,
    each: number,
    found: Map<string, DeadLetterGroup>,
  ): Promise<number> {
    const walk = channel === undefined ? walkHeads : walkHeadsOfChannel;
    const rows = await query<WalkedRow>(walk(heads[0]!.day), {
      subscriptions: heads.map((head) => head.subscriptionId),
      states: heads.map((head) => head.state),
      befores: heads.map((head) => head.before!),
      from,
      each,
      replay: replayId ?? null,
      channel: channel ?? null,
    });
    const walkedOf = new Map<Head, number>();
    for (const row of rows) {
      const head = heads[row.head - 1]!;
      walkedOf.set(head, row.walked);
      head.before = row.walked < each ? undefined : row.last_notification!;
      if (row.error_class !== null) add(found, head, row);
    }
    return [...walkedOf.values()].reduce((sum, walked) => sum + walked, 0);
  }

  /** @param work false: nothing of what follows is done */
  private async inShortTransactions<T>(
    items: readonly T[],
    work: (query: Query, item: T) => Promise<boolean>,
  ): Promise<void> {
    for (let at = 0, goesOn = true; at < items.length && goesOn;) {
      await readAside(this.postgres, async (query) => {
        const endAt = performance.now() + transactionMs;
        do goesOn = await work(query, items[at++]!);
        while (goesOn && at < items.length && performance.now() < endAt);
      });
    }
  }
}

const ownerOf = ({ subscriptionId, state }: Pick<Head, 'subscriptionId' | 'state'>): string =>
  `${subscriptionId}/${state}`;

function add(found: Map<string, DeadLetterGroup>, head: Head, row: WalkedRow): void {
  const { subscriptionId, state } = head;
  const errorClass = row.error_class!;
  const key = `${ownerOf(head)}/${errorClass}`;
  const known = found.get(key);
  if (!known) {
    const { count, oldest, newest, last_ended_at: lastEndedAt, last_status: lastStatus, last_error: lastError } = row;
    const ids = { subscriptionId, state, errorClass };
    found.set(key, { ...ids, count, isAtLeast: false, oldest, newest, lastEndedAt, lastStatus, lastError });
    return;
  }
  known.count += row.count;
  if (row.oldest < known.oldest) known.oldest = row.oldest;
  if (row.last_ended_at > known.lastEndedAt) known.lastEndedAt = row.last_ended_at;
  if (row.newest > known.newest) {
    known.newest = row.newest;
    known.lastStatus = row.last_status;
    known.lastError = row.last_error;
  }
}

/** Heads of one day each, at most so many. */
function batchesOf(heads: readonly Head[], most: number): Head[][] {
  const batches: Head[][] = [];
  for (const head of heads) {
    const last = batches.at(-1);
    if (last && last.length < most && last[0]!.day === head.day) last.push(head);
    else batches.push([head]);
  }
  return batches;
}
