import { Injectable, Logger } from '@nestjs/common';
import { AuditLog } from '../audit/audit-log.js';
import { Config } from '../config/config.module.js';
import { AttemptStates } from '../delivery/attempt-states.js';
import { deliveryKeys, keyIdOf } from '../delivery/delivery-keys.js';
import { sealMsOf } from '../delivery/seal-lifetime.js';
import type { SealedOutcome } from '../delivery/sealed-outcome.js';
import { Idempotency, type IdempotentOperation } from '../idempotency/idempotency.service.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import type { Values } from '../infra/postgres/statement.js';
import { readDays } from '../ledger/days.js';
import { cancelNext } from '../ledger/cancel-erased.js';
import { keyOf, namedDeliveries, notificationIdOf, type DeliveryKey, type KeyRow } from '../ledger/delivery.js';
import { outdateDigests } from '../ledger/digests.js';
import { eraseAnswers, eraseAnswersOf, eraseKeys, eraseTexts, type Erased } from '../ledger/erase-bodies.js';
import { dayOfId, lowestId } from '../ledger/partitions.js';
import { onEachDay } from '../ledger/per-day.js';
import { areAsRead, readTextVersions, type TextVersion } from '../ledger/text-versions.js';
import { walkDeliveries } from '../ledger/walk-deliveries.js';
import type { ErasureState } from './erasure.js';
import { stepThrough, type WalkStep } from './erasure-walk.js';
import {
  abandonErasures,
  addUnsettled,
  claimErasure,
  endErasure,
  findGone,
  findOpen,
  findUnsealed,
  forgetErasures,
  forgetGone,
  lockErasure,
  mostOpen,
  noteCancelled,
  noteSealed,
  noteStep,
  settledWithin,
  unsettled,
  type ClaimedRow,
} from './erasure-rows.js';
import { bodiesErasedCounted } from './retention.counters.js';

/** Notifications that one step looks at. The embedded database reads their texts in this process's only thread. */
const stepRows = { real: 2000, embedded: 200 };
/** Deliveries that one statement cancels. */
const mostCancelled = 2000;
/** Whose last answers one statement erases. */
const mostGone = 1000;
const sealedTogether = 64;
/** A worker that finds it does not send. The ledger, where the delivery is cancelled, does not take it. */
const erasedSeal: SealedOutcome = ['failed'];

/**
 * Another text is in the place of one by which a notification was found, or another process, for which this one stood
 * still, has worked the erasure off.
 */
class StepOutdated extends Error {}

/**
 * Works off what operators had erased. Each step notes how far it came, so it goes on where it was after any restart,
 * and any number of processes may run it: two that make the same step at the same time do nothing that harms, and one
 * of them notes it.
 *
 * A delivery that is cancelled in the ledger may still be in the memory of a worker, or on its way there. The key of
 * each one is sealed: from then on no worker sends it. Where one is sending it at that moment, the key is locked, and
 * the erasure waits.
 */
@Injectable()
export class ErasureWork {
  private readonly logger = new Logger(ErasureWork.name);
  private readonly keys: IdempotentOperation<SealedOutcome>;
  private readonly sealMs: number;
  private readonly keptDays: number;
  private readonly settledWithin: number;
  /**
   * Of those that are ending, the last one that was looked at; the next round goes on behind it, or at the first one
   * again.
   */
  private endingUpTo: string = lowestId;

  constructor(
    private readonly postgres: Postgres,
    idempotency: Idempotency,
    private readonly attemptStates: AttemptStates,
    { settings }: Config,
  ) {
    this.keys = deliveryKeys(idempotency, settings);
    this.sealMs = sealMsOf('', settings.TTL_IDEMPOTENCY_PER_CUSTOMER_SEC);
    this.keptDays = settings.AUDIT_RETENTION_DAYS;
    this.settledWithin = settledWithin(settings.DATABASE_TIMEOUT);
  }

  /** One that fails keeps no other one waiting. @throws the error of the first of them */
  async workOff(stopping: AbortSignal): Promise<void> {
    const open = await this.postgres.query<{ id: string; is_ending: boolean }>(findOpen, { after: this.endingUpTo });
    const ending = open.filter(({ is_ending }) => is_ending);
    this.endingUpTo = ending.length < mostOpen ? lowestId : ending.at(-1)!.id;
    const failures: unknown[] = [];
    for (const { id } of open) {
      // Those that are away as well: one may come back, and would bring what was to be erased.
      const days = (await readDays(this.postgres)).map(({ day }) => day);
      try {
        while (!stopping.aborted && (await this.step(id, days, stopping)));
        if (!stopping.aborted) await this.end(id, stopping);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Abandons what was counted and never confirmed: its main object is not kept for ever. Forgets those of long ago. */
  async sweep(): Promise<void> {
    await this.postgres.query(abandonErasures);
    await this.postgres.query(forgetErasures, { days: this.keptDays });
  }

  /** @returns whether there is more to do before it can end */
  private async step(id: string, days: readonly number[], stopping: AbortSignal): Promise<boolean> {
    const looked = await this.postgres.transaction(async (query) => {
      const [claimed] = await query<ClaimedRow>(claimErasure, { id });
      if (!claimed) return undefined;
      const walked = await this.walk(query, claimed, days);
      if (claimed.state === 'counting') {
        const state = walked.isOver ? 'counted' : 'counting';
        await query(noteStep, { id, state, reached: walked.reached, found: walked.ids.length, erased: 0 });
      }
      return { claimed, walked };
    });
    if (!looked) return false;
    const { claimed, walked } = looked;
    return claimed.state === 'counting' ? !walked.isOver : this.eraseFound(id, claimed, walked, stopping);
  }

  /**
   * In several transactions: what was found may have any number of deliveries. The texts go with the last of them, so a
   * step that does not come so far finds them again.
   */
  private async eraseFound(id: string, claimed: ClaimedRow, step: WalkStep, stopping: AbortSignal): Promise<boolean> {
    const { ids, day, isOver, reached } = step;
    const texts = step.texts ?? (await readTextVersions(this.postgres, day, ids));
    try {
      if (!(await this.cancel(id, step, stopping))) return false;
    } catch (error) {
      if (error instanceof StepOutdated) return true; // the step is made again, if there is one
      throw error;
    }
    const unfinished = await eraseAnswers(this.postgres, day, ids, { stopping });
    if (!unfinished) return false;
    // An operator retried one while this was on its way: the step is made again, and cancels it too.
    if (unfinished.size > 0) return true;
    return this.postgres.transaction(async (query) => {
      const [now] = await query<ClaimedRow>(claimErasure, { id });
      // Another process has made this step, and goes on.
      if (now?.state !== claimed.state || now.reached !== claimed.reached) return false;
      const { bodies, renewed } = await this.erase(query, day, ids, texts);
      const found = claimed.notification_id === null ? 0 : bodies;
      const isMade = renewed.length === 0; // else again, for those that are left
      const next = isMade
        ? { state: isOver ? 'ending' : 'erasing', reached }
        : { state: now.state, reached: now.reached };
      await query(noteStep, { id, ...next, found, erased: bodies });
      bodiesErasedCounted.inc({ because: 'asked' }, bodies);
      return !isMade || !isOver;
    });
  }

  private async walk(query: Query, claimed: ClaimedRow, days: readonly number[]): Promise<WalkStep> {
    const { notification_id: one, main_object: mainObject, reached } = claimed;
    if (one !== null) {
      const day = dayOfId(one);
      // Its day may have been dropped since.
      return { day, ids: days.includes(day) ? [one] : [], reached, isOver: true };
    }
    const limit = this.postgres.isEmbedded ? stepRows.embedded : stepRows.real;
    return stepThrough(query, mainObject!, reached, { days, limit });
  }

  /**
   * @returns false: it was stopped before all were cancelled
   * @throws {StepOutdated} the publisher of a scheduled one has replaced it, or there is nothing to erase any more
   */
  private cancel(id: string, { day, ids, texts }: WalkStep, stopping: AbortSignal): Promise<boolean> {
    const look = (values: Values) =>
      this.postgres.transaction(async (query) => {
        const { reached, found } = await cancelNext(query, day, values);
        // A publisher that replaces it locks its deliveries: it has committed before this has them, or makes new ones
        // afterwards.
        if (texts && !(await areAsRead(query, day, texts))) throw new StepOutdated();
        if (found.length === 0) return reached;
        // Nobody looks at what is added to one that is done.
        const [erasure] = await query<{ state: ErasureState }>(lockErasure, { id });
        if (erasure?.state !== 'erasing') throw new StepOutdated();
        await query(addUnsettled, { id, settled_within: this.settledWithin, ...unsettled.bind(found) });
        const cancelled = found.filter(({ isCancelled }) => isCancelled).length;
        if (cancelled > 0) await query(noteCancelled, { id, cancelled });
        return reached;
      });
    return walkDeliveries(ids, look, { stopping, limit: mostCancelled });
  }

  private async erase(query: Query, day: number, ids: string[], texts: readonly TextVersion[]): Promise<Erased> {
    const erased = await eraseTexts(query, day, texts);
    if (ids.length === 0) return erased;
    await eraseKeys(query, day, ids);
    await outdateDigests(query, ids);
    return erased;
  }

  private async end(id: string, stopping: AbortSignal): Promise<void> {
    await this.sealAll(id, stopping);
    while (!stopping.aborted && (await this.eraseAgain(id)));
    await this.postgres.transaction(async (query) => {
      const [done] = await query<{ found: number; erased: number; cancelled: number }>(endErasure, { id });
      if (!done) return;
      const before = { state: 'ending' };
      const after = { state: 'done', ...done };
      await AuditLog.note(query, { action: 'erasure.done', subject: `erasure/${id}`, before, after });
      this.logger.log({ event: 'retention.erasure-done', erasure: id, ...done });
    });
  }

  /** Those that are being sent are left for the next round. */
  private async sealAll(id: string, stopping: AbortSignal): Promise<void> {
    let after: DeliveryKey = { notificationId: lowestId, subscriptionId: lowestId };
    while (!stopping.aborted) {
      const rows = await this.postgres.query<KeyRow & { replays: number }>(findUnsealed, {
        id,
        after_notification: after.notificationId,
        after_subscription: after.subscriptionId,
        limit: sealedTogether,
      });
      await Promise.all(rows.map((row) => this.seal(id, { ...keyOf(row), replays: row.replays })));
      if (rows.length < sealedTogether) return;
      after = keyOf(rows.at(-1)!);
    }
  }

  private async seal(id: string, delivery: DeliveryKey & { replays: number }): Promise<void> {
    // It may have been sent again since the erasure began: the message of the time before may be on its way too.
    for (const replays of [delivery.replays - 1, delivery.replays])
      if (replays >= 0 && !(await this.sealKey({ ...delivery, replays }))) return;
    this.attemptStates.remove(delivery); // its last error may repeat the body
    const { notificationId: notification, subscriptionId: subscription } = delivery;
    const settled = { settled_within: this.settledWithin };
    await this.postgres.query(noteSealed, { id, notification, subscription, ...settled });
  }

  /** @returns false: it is being sent */
  private async sealKey(delivery: DeliveryKey & { replays: number }): Promise<boolean> {
    const key = await this.keys.acquire(keyIdOf(delivery));
    if (key.kind === 'acquired') await key.lock.seal(erasedSeal, this.sealMs);
    // A seal that could not be written is only logged: so it is looked for.
    return key.kind === 'sealed' || this.isSealed(delivery);
  }

  private async isSealed(delivery: DeliveryKey & { replays: number }): Promise<boolean> {
    const key = await this.keys.acquire(keyIdOf(delivery));
    if (key.kind === 'acquired') await key.lock.release();
    return key.kind === 'sealed';
  }

  /**
   * A call that was open when its delivery was cancelled may have left an answer since. @returns whether it found any
   */
  private async eraseAgain(id: string): Promise<boolean> {
    const rows = await this.postgres.query<KeyRow>(findGone, { id, limit: mostGone });
    const deliveries = rows.map(keyOf);
    await onEachDay(deliveries, notificationIdOf, async (day, ofDay) => [
      await eraseAnswersOf(this.postgres, day, ofDay),
    ]);
    if (deliveries.length > 0) await this.postgres.query(forgetGone, { id, ...namedDeliveries.bind(deliveries) });
    return deliveries.length > 0;
  }
}
