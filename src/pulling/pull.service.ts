import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { Values } from '../infra/postgres/statement.js';
import type { DeliveryState } from '../ledger/delivery.js';
import { lowestIdOfAccepted, readHorizon } from '../ledger/horizon.js';
import { earlierId, highestId, idBefore } from '../ledger/partitions.js';
import { publishingLimits } from '../publishing/publishing-limits.js';
import { Arrivals } from './arrivals.service.js';
import { Fetches, noTurn, type Fetcher } from './fetches.service.js';
import { page } from './find-fetched.js';
import { nextSearch } from './next-search.js';
import { advance, type PullCursor } from './pull-cursor.js';

const mostBytes = 4 * 1024 * 1024;
/** One call goes on searching where nothing was found until so much time has passed. */
const searchMs = 500;
/** Of those that may not be handed out yet: too many above them were, or they are dated a moment ahead. */
const lookAgainMs = 1000;

/** A notification for one subscription. */
export interface Fetched {
  id: string;
  acceptedAt: Date;
  state: DeliveryState;
  /** It is to be sent then, and may be replaced before; null: it is not scheduled. */
  deliverAfter: Date | null;
  /** Null: it is scheduled, or was erased. */
  body: string | null;
}

export interface FetchedPage {
  notifications: Fetched[];
  next: PullCursor;
  /** There may be more of them already. */
  isMore: boolean;
}

interface Look extends FetchedPage {
  /** There is, or may be, something that cannot be handed out yet. */
  isHeldBack: boolean;
}

/** How much of it, and for how long to wait where there is nothing. */
export interface Wish {
  limit: number;
  waitMs: number;
  /** The caller is gone. */
  left: AbortSignal;
}

/** Notifications that a subscriber fetches itself. */
@Injectable()
export class PullService {
  /** Seconds. */
  private readonly timeout: number;

  constructor(
    private readonly postgres: Postgres,
    private readonly arrivals: Arrivals,
    private readonly fetches: Fetches,
    { settings }: Config,
  ) {
    this.timeout = settings.DATABASE_TIMEOUT;
  }

  /** Where to begin for all that were accepted at that time or later: some from a moment before come as well. */
  startAt(acceptedMs: number): PullCursor {
    return { after: lowestIdOfAccepted(acceptedMs, publishingLimits(this.timeout * 1000)), seen: [] };
  }

  /**
   * The notifications accepted for a subscription after the cursor, in the order of the ids. A page may be empty
   * although there is more: then a limited range was searched.
   * @throws {TooManyFetchesProblem}
   */
  fetch(fetcher: Fetcher, from: PullCursor, wish: Wish): Promise<FetchedPage> {
    return wish.waitMs === 0 ? this.lookNow(fetcher, from, wish) : this.lookUntil(fetcher, from, wish);
  }

  private async lookNow(fetcher: Fetcher, from: PullCursor, wish: Wish): Promise<Look> {
    const page = await this.lookInTurn(fetcher, from, wish);
    if (page) return page;
    // The next process has it: an answer without anything and with the same cursor is no error of anybody.
    if (wish.left.aborted || this.arrivals.isStopping)
      return { notifications: [], next: from, isMore: true, isHeldBack: false };
    throw noTurn();
  }

  private async lookUntil(fetcher: Fetcher, from: PullCursor, wish: Wish): Promise<Look> {
    const until = performance.now() + wish.waitMs;
    const waiting = this.arrivals.join(fetcher.subscriptionId);
    try {
      for (let page = await this.lookNow(fetcher, from, wish); ;) {
        const leftMs = until - performance.now();
        const isOver = leftMs <= 0 || wish.left.aborted || this.arrivals.isStopping;
        if (page.isMore || isOver) return page;
        await waiting.wait(page.isHeldBack ? Math.min(leftMs, lookAgainMs) : leftMs, wish.left);
        const again = await this.lookInTurn(fetcher, page.next, wish);
        if (!again) return page;
        page = again;
      }
    } finally {
      waiting.leave();
    }
  }

  private lookInTurn(
    { clientId, subscriptionId }: Fetcher,
    from: PullCursor,
    { left, limit }: Wish,
  ): Promise<Look | undefined> {
    return this.fetches.inTurn(clientId, left, () => this.look(subscriptionId, from, limit));
  }

  /**
   * @param rangeRows deliveries, of whatever subscriptions, that are searched together where there is no digest of them
   */
  async look(subscriptionId: string, { after, seen }: PullCursor, limit: number, rangeRows = 50_000): Promise<Look> {
    // Before the rows are read: see there.
    const horizon = await readHorizon(this.postgres, this.timeout, publishingLimits);
    const begunAt = performance.now();
    for (let from = after; ;) {
      const { windows, end } = await nextSearch(this.postgres, { subscriptionId, after: from, horizon, rangeRows });
      const asked = { subscription: subscriptionId, seen, limit, most_bytes: mostBytes, ...bindWindows(windows) };
      const rows = windows.length === 0 ? [] : await this.postgres.queryAside<PageRow>(page, asked);
      const isEnd = end === highestId;
      const isOver = performance.now() - begunAt > searchMs;
      if (rows.length === 0 && !isEnd && !isOver) {
        from = end;
        continue;
      }
      const found = rows.filter((row) => !row.is_awaited).map(toFetched);
      // Bodies may have filled the page before its limit, so only an empty one is known to be all of the windows.
      const searchedTo = rows.at(-1)?.notification_id ?? end;
      // The cursor does not pass one that is not given yet: it is as if it had not been committed.
      const awaited = rows.find((row) => row.is_awaited);
      const passable = awaited ? earlierId(horizon, idBefore(awaited.notification_id)) : horizon;
      const { count, next, isCut } = advance({ after, seen }, { found, searchedTo, horizon: passable });
      // The next look would begin where this one did, and may come no further, until the horizon has moved.
      const isStuck = !isEnd && next.after === after;
      const isHeldBack = (isCut || awaited !== undefined || isStuck) && count === 0;
      const isMore = count > 0 || (!isEnd && !isHeldBack);
      return { notifications: found.slice(0, count), next, isMore, isHeldBack };
    }
  }
}

const bindWindows = (windows: readonly { after: string; end: string }[]): Values => ({
  window_after: windows.map(({ after }) => after),
  window_end: windows.map(({ end }) => end),
});

interface PageRow {
  notification_id: string;
  state: DeliveryState;
  accepted_at: Date;
  /** Dated a moment ahead, which is not over yet. */
  is_awaited: boolean;
  deliver_after: Date | null;
  body: string | null;
}

const toFetched = (row: PageRow): Fetched => ({
  id: row.notification_id,
  acceptedAt: row.accepted_at,
  state: row.state,
  deliverAfter: row.deliver_after,
  body: row.body,
});
