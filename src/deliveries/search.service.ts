import { Injectable } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import type { Statement, Values } from '../infra/postgres/statement.js';
import { readDays } from '../ledger/days.js';
import { keyOf, type DeliveryKey, type KeyRow } from '../ledger/delivery.js';
import { dayMs, earlierId, highestId, idAfter, idBefore, laterId, lowestId, timeOfId } from '../ledger/partitions.js';
import {
  apart,
  deliveryConditions,
  digestCondition,
  isAboutBody,
  isAboutDelivery,
  isAboutNotification,
  type Criteria,
} from './criteria.js';
import { hasStateIndex, scopeOf, type Scope } from './routes.js';
import * as statements from './search-statements.js';
import { windowOf, type Part, type Sought, type Window } from './search-statements.js';

export interface FoundPage {
  /** Newest first. */
  keys: DeliveryKey[];
  /** Where the list goes on; undefined at its end. */
  next: DeliveryKey | undefined;
  /** The search stopped here, although the page is not full; undefined: it did not. */
  searchedTo: Date | undefined;
}

/** How much one call searches: some tens of milliseconds. */
export interface SearchBounds {
  /**
   * Deliveries of a range in which no index tells which ones are sought; and notifications of which there is no digest,
   * or their deliveries, where those are looked at.
   */
  rows: number;
  /** Blocks of notifications that may have what is sought. */
  blocks: number;
  digests: number;
  /** Subscriptions of an owner, each of which a digest is asked for. */
  owned: number;
  /** Of bodies in a range that one statement reads: where they are large, it has fewer rows. */
  bytes: number;
}

const usualBounds: SearchBounds = { rows: 36_000, blocks: 32, digests: 30_000, owned: 50, bytes: 4 * 1024 * 1024 };

/** Of the rows of a range, as many whole rows can be read and sorted in the time that it takes to search the range. */
const fewOfRange = 0.2;
/** Likewise, where the notification of each delivery of a range has to be looked up. */
const lookedUpOfRange = 0.2;
/**
 * Likewise, of an index of a state: its rows lie far apart in the table, each on a page that may have to come from the
 * disk.
 */
const scatteredOfRange = 0.125;
/** Of the notifications without a digest, or their deliveries, as many are searched at a time. */
const chunkOfRange = 0.1;
/**
 * Blocks that are searched at a time; the first may have enough for a page. Fewer where their deliveries are looked at:
 * one may have 20,000.
 */
const mostTogether = { ofNotifications: 16, ofDeliveries: 2 };

/** How what has no index of its own in the order of the list is looked for. */
interface Look {
  looksAtDeliveries: boolean;
  /** The deliveries that one index has, among which the sought ones are; empty: no index leads to them. */
  scope: Scope;
}

/**
 * Finds deliveries and notifications, by an index where there is one, by the digests of notifications, or else in a
 * limited range.
 */
@Injectable()
export class LedgerSearch {
  constructor(private readonly postgres: Postgres) {}

  /**
   * @param sought where it is notifications, keys have the lowest subscription
   * @param after where the list goes on
   */
  async find(
    sought: Sought,
    asked: Criteria,
    after: DeliveryKey | undefined,
    limit: number,
    bounds = usualBounds,
  ): Promise<FoundPage> {
    const criteria = await this.withinReplay(asked);
    if (criteria === undefined) return asPage([], limit, undefined);
    if (!looksAtDeliveries(sought, criteria))
      return this.inBlocks(sought, criteria, digestCondition(criteria), { after }, limit, bounds);
    const scope = scopeOf(criteria);
    const bytes = isAboutBody(criteria) ? bounds.bytes : undefined;
    const isIndexed =
      !isAboutNotification(criteria) &&
      deliveryConditions(scope).texts.length === deliveryConditions(criteria).texts.length;
    if (scope.notificationId !== undefined && isAboutNotification(criteria))
      return this.ofNotification(sought, criteria, after, limit);
    // A notification with thousands of deliveries is one in a list of notifications: of those, a range is searched.
    if ((isIndexed && sought === 'delivery') || scope.notificationId !== undefined)
      return this.page(sought, criteria, { after }, limit);
    if (hasStateIndex(criteria.state)) {
      const few = Math.ceil(bounds.rows * fewOfRange);
      const exceeds = statements.exceeds(criteria, { after }, { rows: few, bytes });
      const [row] = await this.postgres.queryAside<{ yes: boolean }>(...exceeds);
      if (!row!.yes) return this.page(sought, criteria, { after }, limit, few);
    }
    const condition = scope.subscriptionId === undefined ? await this.digestConditionOf(criteria, bounds) : undefined;
    if (condition !== undefined) return this.inBlocks(sought, criteria, condition, { after }, limit, bounds);
    const share = scope.state ? scatteredOfRange : isAboutNotification(criteria) ? lookedUpOfRange : 1;
    const rows = Math.ceil(bounds.rows * share);
    const rangeEnd = statements.rangeEnd(scope, criteria, { after }, { rows, bytes });
    const [end] = await this.postgres.queryAside<KeyRow>(...rangeEnd);
    return this.page(sought, criteria, { after, end: end && endOfRange(sought, keyOf(end)) }, limit);
  }

  /** The deliveries of a replay lie between two notifications. @returns undefined: it has none */
  private async withinReplay(criteria: Criteria): Promise<Criteria | undefined> {
    if (criteria.replayId === undefined) return criteria;
    const [done] = await this.postgres.queryAside<{ from: string | null; to: string | null }>(
      ...statements.doneBy(criteria.replayId),
    );
    if (!done) return criteria;
    if (done.from === null || done.to === null) return undefined;
    const { from = lowestId, before = highestId } = criteria;
    return { ...criteria, from: laterId(from, done.from), before: earlierId(before, done.to) };
  }

  /** Its body may have a megabyte: it is looked at once, and not with each delivery. */
  private async ofNotification(
    sought: Sought,
    criteria: Criteria,
    after: DeliveryKey | undefined,
    limit: number,
  ): Promise<FoundPage> {
    const [ofIt, others] = apart(criteria);
    const [fitting] = await this.keys(statements.inWindows('notification', ofIt, {}, [windowOf(criteria, {})], 1));
    return fitting ? this.page(sought, others, { after }, limit) : asPage([], limit, undefined);
  }

  /** A digest has what was so when it was written; which subscriptions an owner has may have changed since. */
  private async digestConditionOf(criteria: Criteria, bounds: SearchBounds): Promise<string | undefined> {
    if (criteria.owner === undefined) return digestCondition(criteria);
    const [oldest] = await readDays({ query: (statement, values) => this.postgres.queryAside(statement, values) });
    // A day earlier: Postgres' clock may have been set.
    const oldestMs = ((oldest?.day ?? 0) - 1) * dayMs;
    const owned = await this.postgres.queryAside<{ id: string }>(
      ...statements.ownedBy(criteria.owner, oldestMs, bounds.owned + 1),
    );
    return digestCondition(criteria, owned.length > bounds.owned ? undefined : owned.map(({ id }) => id));
  }

  private async page(sought: Sought, criteria: Criteria, part: Part, limit: number, few?: number): Promise<FoundPage> {
    // One more than asked for tells whether the list goes on.
    const keys = await this.keys(statements.byDelivery(sought, criteria, part, limit + 1, few));
    return asPage(keys, limit, part.end);
  }

  /**
   * Reads all that has no digest: the newest, and what was brought back; of the rest, what may have it by its digest.
   * @param condition over a digest; undefined: digests do not tell
   */
  private async inBlocks(
    sought: Sought,
    criteria: Criteria,
    condition: string | undefined,
    part: Part,
    limit: number,
    bounds: SearchBounds,
  ): Promise<FoundPage> {
    const search = new BlockSearch(
      (windows, most) => this.keys(statements.inWindows(sought, criteria, part, windows, most)),
      limit,
    );
    const whole = windowOf(criteria, part);
    const look = { looksAtDeliveries: looksAtDeliveries(sought, criteria), scope: scopeOf(criteria) };
    const bytes = isAboutBody(criteria) ? bounds.bytes : undefined;
    const inRange = (window: Window) => this.inRange(search, look, window, { rows: bounds.rows, bytes });
    const [known] = await this.postgres.queryAside<Window>(statements.digested);
    if (condition === undefined || !known) {
      await inRange(whole);
      return search.page();
    }
    const digested = { from: laterId(known.from, whole.from), to: earlierId(known.to, whole.to) };
    const chunks = [
      () => inRange({ from: laterId(idAfter(known.to), whole.from), to: whole.to }),
      () => this.inDigested(search, look, condition, digested, bounds),
      () => inRange({ from: whole.from, to: earlierId(idBefore(known.from), whole.to) }),
    ];
    for (const chunk of chunks) {
      if (search.isOver) break;
      await chunk();
    }
    return search.page();
  }

  /** In chunks: one that ends early because of its bodies or deliveries counts as a whole one. */
  private async inRange(
    search: BlockSearch,
    look: Look,
    window: Window,
    { rows, bytes }: statements.RangeSize,
  ): Promise<void> {
    const together = Math.max(1, Math.ceil(rows * chunkOfRange));
    let { to } = window;
    for (let left = rows; window.from <= to; left -= together) {
      if (look.scope.state !== undefined) {
        const newest = await this.deliveryEnd(look.scope, { from: window.from, to }, 1);
        if (newest === undefined) return;
        to = newest;
      }
      if (left <= 0) return search.stopAt(idAfter(to));
      const end = await this.chunkEnd(look, { from: window.from, to }, { rows: together, bytes });
      const from = end ?? window.from;
      await search.read([{ from, to }]);
      if (end === undefined || search.isOver) return;
      to = idBefore(from);
    }
  }

  /** The oldest notification of the chunk, with all its deliveries; undefined: the window has no more. */
  private async chunkEnd(look: Look, window: Window, size: statements.RangeSize): Promise<string | undefined> {
    const [end] = await this.postgres.queryAside<{ id: string }>(...statements.notificationRangeEnd(window, size));
    if (!look.looksAtDeliveries) return end?.id;
    const byDeliveries = await this.deliveryEnd({}, { from: end?.id ?? window.from, to: window.to }, size.rows);
    return byDeliveries ?? end?.id;
  }

  /** The notification of the delivery with which a window has so many of a scope; undefined: it has fewer. */
  private async deliveryEnd(scope: Scope, { from, to }: Window, rows: number): Promise<string | undefined> {
    const rangeEnd = statements.rangeEnd(scope, { from, before: to }, {}, { rows, bytes: undefined });
    const [end] = await this.postgres.queryAside<KeyRow>(...rangeEnd);
    return end?.notification_id;
  }

  private async inDigested(
    search: BlockSearch,
    look: Look,
    condition: string,
    window: Window,
    bounds: SearchBounds,
  ): Promise<void> {
    if (window.from > window.to) return;
    const [end] = await this.postgres.queryAside<{ from_id: string }>(
      ...statements.digestRangeEnd(window, bounds.digests),
    );
    const reached = { from: laterId(end?.from_id ?? lowestId, window.from), to: window.to };
    const blocks = await this.postgres.queryAside<Window>(
      ...statements.candidates(condition, reached, bounds.blocks + 1, look.scope),
    );
    const toRead = blocks.slice(0, bounds.blocks);
    const most = look.looksAtDeliveries ? mostTogether.ofDeliveries : mostTogether.ofNotifications;
    for (let at = 0, together = 1; at < toRead.length; at += together, together = Math.min(2 * together, most)) {
      await search.read(toRead.slice(at, at + together));
      if (search.isOver) return;
    }
    if (blocks.length > bounds.blocks) search.stopAt(toRead.at(-1)!.from);
    else if (end) search.stopAt(end.from_id);
  }

  private async keys(ready: [Statement, Values]): Promise<DeliveryKey[]> {
    return (await this.postgres.queryAside<KeyRow>(...ready)).map(keyOf);
  }
}

/** One page of a list that is searched block by block, from the newest to the oldest. */
class BlockSearch {
  private readonly found: DeliveryKey[] = [];
  private stoppedAt: string | undefined;

  constructor(
    private readonly readWindows: (windows: readonly Window[], most: number) => Promise<DeliveryKey[]>,
    private readonly limit: number,
  ) {}

  /** The page is full, and what comes after it is known; or it was stopped. */
  get isOver(): boolean {
    return this.found.length > this.limit || this.stoppedAt !== undefined;
  }

  async read(windows: readonly Window[]): Promise<void> {
    this.found.push(...(await this.readWindows(windows, this.limit + 1 - this.found.length)));
  }

  /** Nothing older than that notification was searched. */
  stopAt(notificationId: string): void {
    this.stoppedAt = notificationId;
  }

  page(): FoundPage {
    const end = this.stoppedAt === undefined ? undefined : { notificationId: this.stoppedAt, subscriptionId: lowestId };
    return asPage(this.found, this.limit, end);
  }
}

const looksAtDeliveries = (sought: Sought, criteria: Criteria): boolean =>
  sought === 'delivery' || isAboutDelivery(criteria);

/** @param end where the search stopped */
function asPage(found: DeliveryKey[], limit: number, end: DeliveryKey | undefined): FoundPage {
  const keys = found.slice(0, limit);
  if (found.length > limit) return { keys, next: keys.at(-1), searchedTo: undefined };
  return { keys, next: end, searchedTo: end && new Date(timeOfId(end.notificationId)) };
}

/**
 * A list of notifications goes on behind the whole one at which the range ends, so all of that one's deliveries are in
 * the range.
 */
const endOfRange = (sought: Sought, { notificationId, subscriptionId }: DeliveryKey): DeliveryKey => ({
  notificationId,
  subscriptionId: sought === 'delivery' ? subscriptionId : lowestId,
});
