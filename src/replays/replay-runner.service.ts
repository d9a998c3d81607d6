import { Injectable, Logger } from '@nestjs/common';
import { AuditLog } from '../audit/audit-log.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { HoldRule } from '../endpoints/hold-rule.service.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { readDays, type LedgerDay } from '../ledger/days.js';
import { endMany } from '../ledger/end-many.js';
import { readHorizon } from '../ledger/horizon.js';
import { dayMs, lowestId, lowestIdAt } from '../ledger/partitions.js';
import { sendAgain, type SentAgain } from '../ledger/send-again.js';
import { publishingLimits } from '../publishing/publishing-limits.js';
import { SubscriptionDirectory, type ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import { daysWithin, findMissedToSend, findOnDay, type Found } from './find-meant.js';
import { creditNow, nextStepMs } from './pace.js';
import type { Replay, Skipped, SkipReason, StopReason } from './replay.js';
import {
  bringForward,
  claimStep,
  endReplay,
  postponeReplay,
  replayOf,
  saveStep,
  startReplay,
  stepDue,
  sweepItems,
  type ClaimedRow,
  type ReplayRow,
} from './replay-rows.js';

/** Deliveries that one step sends, cancels or closes: a fraction of a second's work for Postgres. */
const mostOfStep = 1000;
/** Rows that a step looks at, where few of them are meant. */
const mostWalked = 5000;
/** Days that a step looks into, where they are empty. */
const mostDays = 32;
/** After a step that failed. */
const failedPauseMs = 5000;
/** After a step that came to the horizon. */
const horizonPauseMs = 1000;
/**
 * After a step that came to what it would send of a day that is away: that is brought back, or is dropped, within an
 * hour.
 */
const awayPauseMs = 5000;

/** A replay that a step goes on with. */
interface Advancing {
  replay: Replay;
  /** Of a replay of everything; undefined of every other one. */
  subscription: ListedSubscription | undefined;
}

/** The work that a step has done so far. */
interface Progress {
  after: Replay['after'];
  found: number;
  done: number;
  skipped: Skipped;
  /** The first and the last notification of which it has sent, cancelled or closed a delivery; undefined: none. */
  firstDone: string | undefined;
  lastDone: string | undefined;
  /** All has been looked at. */
  isComplete: boolean;
  /** Until the next step, because it cannot go on before: it is at the horizon, or at a day that is away. */
  pauseMs: number;
}

/**
 * Carries out replays, step by step. A step is one transaction: it changes deliveries and notes how far it came, so
 * whoever is killed leaves nothing half done, and any dispatcher goes on. Its row is locked meanwhile: it runs once,
 * however many dispatchers there are.
 */
@Injectable()
export class ReplayRunner {
  private readonly logger = new Logger(ReplayRunner.name);
  /** Seconds. */
  private readonly timeout: number;

  constructor(
    private readonly postgres: Postgres,
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly holdRule: HoldRule,
    { settings }: Config,
  ) {
    this.timeout = settings.DATABASE_TIMEOUT;
  }

  /** Makes all steps that are due. @returns how many deliveries were sent, cancelled or closed */
  async stepAll(stopping: AbortSignal): Promise<number> {
    let total = 0;
    while (!stopping.aborted) {
      const version = await stepDue((text, values) => this.postgres.query(text, values));
      if (version === undefined) break;
      // A subscription that was just deleted would be taken for one that is there.
      await this.catalogue.reach(version);
      const done = await this.stepNext(await readDays(this.postgres));
      if (done === undefined) break;
      total += done;
    }
    return total;
  }

  /** Those that would stand still because Postgres' clock was set back go on. */
  async bringForward(): Promise<void> {
    await this.postgres.affected(bringForward);
  }

  /** Forgets those that ended that long ago. */
  async sweep(days: number): Promise<void> {
    await this.postgres.affected(sweepItems, { days, limit: 1000 });
  }

  /** @returns undefined: other dispatchers make the steps that are due */
  private async stepNext(days: readonly LedgerDay[]): Promise<number | undefined> {
    let id: string | undefined;
    try {
      return await this.postgres.transaction(async (query) => {
        const [row] = await query<ClaimedRow>(claimStep);
        id = row?.id;
        return row && this.step(query, row, days);
      });
    } catch (error) {
      if (id === undefined) throw error;
      this.logger.error({ event: 'replay.step-failed', replayId: id, error });
      // Also one that took too long: it would be the next one again. Where the ledger cannot be reached, this fails
      // too.
      await this.postgres.query(postponeReplay, { id, next_ms: failedPauseMs });
      return 0;
    }
  }

  private async step(query: Query, row: ClaimedRow, days: readonly LedgerDay[]): Promise<number> {
    const replay = replayOf(row);
    if (row.is_over) return this.end(query, replay, 'stopped', 'stop-time');
    const { everythingFor } = replay.selection;
    // Once for the whole step: it may be deleted while that lasts.
    const subscription = everythingFor === undefined ? undefined : this.subscriptions.find(everythingFor);
    const gone = everythingFor === undefined ? undefined : goneFor(subscription);
    if (gone) return this.end(query, replay, 'stopped', gone);
    if (replay.state === 'scheduled') return this.start(query, replay);

    const rate = replay.ratePerSecond;
    const credit = rate === null ? null : creditNow(rate, row);
    const limit = credit === null ? mostOfStep : Math.min(mostOfStep, Math.floor(credit));
    const progress = await this.advance(query, { replay, subscription }, days, limit);
    const { isComplete, pauseMs, after, found, done, skipped } = progress;
    const left = credit === null ? 0 : credit - done;
    await query<ReplayRow>(saveStep, {
      id: replay.id,
      after_notification: after.notificationId,
      after_subscription: after.subscriptionId,
      found,
      done,
      skipped: JSON.stringify(skipped),
      first_done: progress.firstDone ?? null,
      last_done: progress.lastDone ?? null,
      credit: left,
      next_ms: Math.max(nextStepMs(rate, left), pauseMs),
    });
    if (isComplete) await this.end(query, replay, 'done', null);
    return done;
  }

  private async start(query: Query, { id, state }: Replay): Promise<number> {
    await query(startReplay, { id });
    const subject = `replay/${id}`;
    await AuditLog.note(query, { action: 'replay.started', subject, before: { state }, after: { state: 'running' } });
    return 0;
  }

  private async end(query: Query, { id, state }: Replay, next: 'done' | 'stopped', because: StopReason | null) {
    const [row] = await query<ReplayRow>(endReplay, { id, state: next, because });
    const { found, done, skipped } = row!;
    const after = { state: next, ...(because && { stoppedBecause: because }), found, done, skipped };
    await AuditLog.note(query, { action: `replay.${next}`, subject: `replay/${id}`, before: { state }, after });
    const event = next === 'done' ? 'replay.done' : 'replay.stopped';
    this.logger.log({ event, replayId: id, because, found, done, skipped });
    return 0;
  }

  /** Looks through the days from where it came to, until it has found as many as it may, or looked at as much. */
  private async advance(
    query: Query,
    { replay, subscription }: Advancing,
    days: readonly LedgerDay[],
    limit: number,
  ): Promise<Progress> {
    const progress: Progress = {
      after: replay.after,
      found: 0,
      done: 0,
      skipped: { ...replay.skipped },
      firstDone: undefined,
      lastDone: undefined,
      isComplete: false,
      pauseMs: 0,
    };
    if (limit === 0) return progress;
    let scan = mostWalked;
    const before = await this.searchedTo(query, replay);
    const ahead = daysWithin(days, { after: replay.after, before });
    for (const { day, isAway } of ahead.slice(0, mostDays)) {
      const bounds = { after: progress.after, before, scan, limit: limit - progress.found };
      const { found, walked, reached } = subscription
        ? await findMissedToSend(query, day, replay, subscription, bounds)
        : await findOnDay(query, day, replay, bounds);
      // Nothing of it is handed out: all that this sends until the day is back would go out then at once, whatever the
      // rate.
      if (isAway && replay.kind === 'replay' && found.length > 0) return { ...progress, pauseMs: awayPauseMs };
      await this.carryOut(query, day, replay, found, progress);
      if (reached) return { ...progress, after: reached };
      const end = lowestIdAt((day + 1) * dayMs);
      const notificationId = end < before ? end : before;
      // The horizon may lie behind where an earlier step came to.
      if (notificationId > progress.after.notificationId) progress.after = { notificationId, subscriptionId: lowestId };
      scan = Math.max(1, scan - walked);
    }
    const isOver = ahead.length <= mostDays;
    return {
      ...progress,
      isComplete: isOver && before === replay.before,
      pauseMs: isOver && before < replay.before ? horizonPauseMs : 0,
    };
  }

  /**
   * A notification may be committed later than one with a higher id: beyond the horizon it would be passed over. A
   * delivery that is sent again was committed long before; so was a single notification that was counted.
   */
  private async searchedTo(query: Query, { selection, counted, before }: Replay): Promise<string> {
    if (selection.everythingFor === undefined || (selection.notification !== undefined && counted > 0)) return before;
    const horizon = await readHorizon({ query }, this.timeout, publishingLimits);
    return horizon < before ? horizon : before;
  }

  private async carryOut(query: Query, day: number, replay: Replay, found: readonly Found[], progress: Progress) {
    const skip = (reason: SkipReason, count = 1) => {
      if (count > 0) progress.skipped[reason] = (progress.skipped[reason] ?? 0) + count;
    };
    const { states } = replay;
    let count: number;
    let done: number;
    if (replay.kind === 'replay') {
      const items = found.flatMap((each): SentAgain[] => {
        const judged = this.judge(each);
        if (typeof judged !== 'string') return [judged];
        skip(judged);
        return [];
      });
      count = items.length;
      done = await sendAgain(query, day, items, { states, replay: replay.id, behind: progress.found });
    } else {
      count = found.length;
      done = await endMany(query, day, found, { states, replay: replay.id });
    }
    skip('changed', count - done);
    progress.found += found.length;
    progress.done += done;
    if (done === 0) return;
    progress.firstDone ??= found[0]!.notificationId;
    progress.lastDone = found.at(-1)!.notificationId;
  }

  /** The delivery to send, or why it is not sent. */
  private judge({ notificationId, subscriptionId, isNew, objectKey, isErased }: Found): SentAgain | SkipReason {
    const subscription = this.subscriptions.find(subscriptionId);
    if (!subscription) return 'subscriptionDeleted';
    if (subscription.disabledAt) return 'subscriptionDisabled';
    if (isErased) return 'bodyErased';
    return { notificationId, subscriptionId, isNew, objectKey, heldFor: this.holdRule.onAcceptance(subscription) };
  }
}

/** Why a replay of everything for it cannot go on; undefined: it can. */
function goneFor(subscription: ListedSubscription | undefined): StopReason | undefined {
  if (!subscription) return 'subscription-deleted';
  return subscription.disabledAt ? 'subscription-disabled' : undefined;
}
