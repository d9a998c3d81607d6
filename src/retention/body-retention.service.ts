import { Injectable, Logger } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import { readAllBodyDays, readBodyDays } from '../channels/read-body-days.js';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { readDays } from '../ledger/days.js';
import { graceOfDeadLetters } from '../ledger/delivery.js';
import { eraseAnswers, eraseTexts, findNeeded, lockTexts } from '../ledger/erase-bodies.js';
import { dateOf, dayMs, lowestId, lowestIdAt, partitionOf, type LedgerTable } from '../ledger/partitions.js';
import { byDay, onDay } from '../ledger/per-day.js';
import { lockChannels, readChannels } from '../ledger/read-channels.js';
import { readTextVersions } from '../ledger/text-versions.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { dueChannels, type BodyDays } from './due-channels.js';
import { findOldBodies, type OldBodies } from './old-bodies.js';
import { bodiesErasedCounted } from './retention.counters.js';
import {
  beginWalk,
  endWalk,
  findDays,
  findOlderSnapshot,
  leaveOut,
  lockWalk,
  noteWalked,
  type DayRow,
  type Walk,
} from './retention-days.js';

/** Notifications that one step looks at. */
const batchSize = 1000;
/** A row without its text is written anew; without these the table would grow by all of them before it shrinks. */
const stepsBetweenVacuums = 20;
/** Of deliveries, few rows are written anew, and autovacuum comes early. */
const onTheWay: readonly LedgerTable[] = ['notification', 'attempt'];
/** After each step: the walk may take an hour, and leaves the disk to those that deliver. */
const pauseMs = 50;

/** For snapshots that are older than what was erased, before the rest is left to the next round. */
const mostLooks = 20;

const rememberKept = statement(
  'remember-kept-bodies',
  `WITH added AS (INSERT INTO kept_body SELECT unnest($ids::uuid[]) ON CONFLICT DO NOTHING RETURNING 1)
   SELECT count(*)::int AS bodies FROM added`,
);

const readKept = statement(
  'read-kept-bodies',
  'SELECT notification_id AS id FROM kept_body WHERE notification_id > $after ORDER BY notification_id LIMIT $limit',
);

const forgetKept = statement(
  'forget-kept-body',
  `WITH gone AS (DELETE FROM kept_body WHERE notification_id = ANY ($ids::uuid[]) RETURNING 1)
   SELECT count(*)::int AS bodies FROM gone`,
);

const noteKeptErased = statement(
  'note-kept-bodies-erased',
  `UPDATE retention_day SET bodies_erased = bodies_erased + $bodies, body_bytes = body_bytes + $bytes,
     bodies_kept = GREATEST(0, bodies_kept - $kept)
   WHERE day = $day::date`,
);

/**
 * Erases the bodies of notifications that are past BODY_RETENTION_DAYS, or the days that their channel has of its own.
 * Each day is walked through once, in steps that remember how far they came; a channel that is given fewer days later
 * has a walk of its own. A notification with an unfinished delivery, or with a dead letter that may yet be sent again,
 * is remembered, and erased when it has none any more; so is one that is scheduled for later. A channel that is given
 * more days meanwhile keeps what it still has, and is walked through anew when those are over. Any number of processes
 * may run it: two that make the same step at the same time do nothing that harms, and one of them notes it.
 */
@Injectable()
export class BodyRetention {
  private readonly logger = new Logger(BodyRetention.name);
  private readonly general: number | undefined;
  private readonly graceDays: number;

  constructor(
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
    private readonly clock: Clock,
    { settings }: Config,
  ) {
    this.general = settings.BODY_RETENTION_DAYS;
    this.graceDays = graceOfDeadLetters(settings.RETENTION_DAYS);
  }

  /** A day that fails keeps no other one waiting. @throws the error of the first of them */
  async eraseOld(stopping: AbortSignal): Promise<void> {
    const channels = await readAllBodyDays((statement, values) => this.postgres.query(statement, values));
    const days = (await readDays(this.postgres)).filter(({ isAway }) => !isAway).map(({ day }) => day);
    const nowMs = this.ledgerClock.now();
    const rows = await this.postgres.query<DayRow>(findDays, { from: dateOf(days[0] ?? 0) });
    const known = new Map(rows.map((row) => [row.day, row]));
    const failures: unknown[] = [];
    for (const day of days) {
      if (stopping.aborted) break;
      try {
        await this.eraseOf(day, known.get(dateOf(day)), { channels, nowMs, stopping });
      } catch (error) {
        failures.push(error);
      }
    }
    try {
      await this.eraseKept(nowMs, failures, stopping);
    } catch (error) {
      failures.push(error);
    }
    if (failures.length > 0) throw failures[0];
  }

  private async eraseOf(
    day: number,
    row: DayRow | undefined,
    { channels, nowMs, stopping }: { channels: readonly BodyDays[]; nowMs: number; stopping: AbortSignal },
  ): Promise<void> {
    let walked = row?.walk_channels ? await this.walk(day, nowMs, stopping) : undefined;
    const done = new Set([...(row?.erased_channels ?? []), ...(row?.walk_channels ?? [])]);
    const due = dueChannels(channels, day, nowMs, this.general).filter((name) => !done.has(name));
    if (due.length > 0 && !stopping.aborted) {
      // Before the end of the one that is behind all, which may wait for a backup, or fail: bodies must not.
      const begun = { day: dateOf(day), channels: due, reached: lowestIdAt(day * dayMs) };
      const { channels: walkedChannels = null, reached: walkedTo = null } = walked ?? {};
      await this.postgres.query(beginWalk, { ...begun, walkedChannels, walkedTo });
      walked = await this.walk(day, nowMs, stopping);
    }
    if (walked) await this.end(day, walked, stopping);
  }

  /**
   * Goes on where the walk through that day had come.
   * @returns the walk when there is nothing behind it; undefined: another process goes on with it, the day was dropped,
   *   or this one stops
   */
  private async walk(day: number, nowMs: number, stopping: AbortSignal): Promise<Walk | undefined> {
    for (let steps = 1; !stopping.aborted; steps++) {
      const result = await onDay(this.step(day, nowMs, stopping), 'over' as const);
      if (result === 'over') return undefined;
      if (result !== 'more') return result;
      if (steps % stepsBetweenVacuums === 0) await this.vacuum(day, onTheWay, 'INDEX_CLEANUP OFF, TRUNCATE OFF');
      await this.clock.pause(pauseMs, stopping);
    }
    return undefined;
  }

  /**
   * The texts go last, with the note of how far the walk came: a step that does not come so far is made again. One that
   * finds a channel that is not due any more does nothing but leave it out: before it looks at anything, and again
   * before the texts go, since the look may take minutes.
   * @returns the walk when there is nothing behind it; 'over': another process goes on with it, the day was dropped, or
   *   this one stops
   */
  private async step(day: number, nowMs: number, stopping: AbortSignal): Promise<'more' | 'over' | Walk> {
    const date = dateOf(day);
    const [walk] = await this.postgres.query<Walk>(lockWalk, { day: date });
    if (!walk) return 'over';
    if (walk.channels.length === 0) return walk;
    const query: Query = (statement, values) => this.postgres.query(statement, values);
    if ((await this.leaveOutUndue(query, day, walk.channels, nowMs)).length > 0) return 'more';
    const [page] = await this.postgres.query<OldBodies>(findOldBodies(day), { ...walk, limit: batchSize });
    // Nothing to note: it would look as if something had been erased just now.
    if (page!.rows === 0) return walk;
    const judged = await this.eraseAnswersOfUnneeded(day, page!.due, stopping);
    if (!judged) return 'over';
    const reached = page!.reached ?? walk.reached;
    return this.postgres.transaction(async (query) => {
      await query(lockTexts(day));
      const [now] = await query<Walk>(lockWalk, { day: date });
      if (!now || !isDeepStrictEqual(now, walk)) return 'over';
      if ((await this.leaveOutUndue(query, day, walk.channels, nowMs)).length > 0) return 'more';
      const { bodies, bytes, renewed } = await eraseTexts(query, day, judged.texts);
      const [kept] = await query<{ bodies: number }>(rememberKept, { ids: [...judged.needed, ...renewed] });
      await query(noteWalked, { day: date, reached, bodies, bytes, kept: kept!.bodies });
      bodiesErasedCounted.inc({ because: 'retention' }, bodies);
      return page!.rows === batchSize ? 'more' : { ...walk, reached };
    });
  }

  /**
   * Of notifications that no delivery needs any more, and which are not scheduled. @returns undefined: it was stopped
   * before all were erased
   */
  private async eraseAnswersOfUnneeded(day: number, ids: readonly string[], stopping: AbortSignal) {
    const options = { stopping, rest: () => this.clock.pause(pauseMs, stopping) };
    const texts = await readTextVersions(this.postgres, day, ids);
    const needed = await findNeeded(this.postgres, day, ids, { ...options, graceDays: this.graceDays });
    if (!needed) return undefined;
    for (const { id, is_scheduled: isScheduled } of texts) if (isScheduled) needed.add(id);
    const unneeded = ids.filter((id) => !needed.has(id));
    // An operator may have retried one since.
    const again = await eraseAnswers(this.postgres, day, unneeded, options);
    if (!again) return undefined;
    for (const id of again) needed.add(id);
    const isUnneeded = (id: string) => !needed.has(id);
    return { unneeded: unneeded.filter(isUnneeded), texts: texts.filter(({ id }) => isUnneeded(id)), needed };
  }

  /**
   * Ends with the vacuum: a walk whose vacuum failed, or would remove nothing because somebody still sees the former
   * texts, is found again, and ended in a later round.
   */
  private async end(day: number, walk: Walk, stopping: AbortSignal): Promise<void> {
    if (await this.isStillSeen(day, stopping)) {
      if (!stopping.aborted) this.logger.log({ event: 'retention.bodies-still-seen', day: dateOf(day) });
      return;
    }
    await this.vacuum(day, [...onTheWay, 'delivery'], 'INDEX_CLEANUP ON');
    const values = { day: dateOf(day), ...walk };
    const [total] = await this.postgres.query<{ bodies: number; bytes: number; kept: number }>(endWalk, values);
    if (!total) return;
    this.logger.log({ event: 'retention.bodies-erased', day: dateOf(day), channels: walk.channels.length, ...total });
  }

  /** Statements end in a moment, and others begin; a backup does not. */
  private async isStillSeen(day: number, stopping: AbortSignal): Promise<boolean> {
    for (let looks = 0; looks < mostLooks && !stopping.aborted; looks++) {
      if (looks > 0) await this.clock.pause(pauseMs, stopping);
      const [found] = await this.postgres.query<{ yes: boolean }>(findOlderSnapshot, { day: dateOf(day) });
      if (!found!.yes) return false;
    }
    return true;
  }

  /** The former texts are on the disk until then. On the way only so that what is written next finds their space. */
  private async vacuum(day: number, tables: readonly LedgerTable[], options: string): Promise<void> {
    const names = tables.map((table) => partitionOf(table, day)).join(', ');
    await onDay(this.postgres.upkeep.query(`VACUUM (${options}) ${names}`), undefined);
  }

  /**
   * Of these channels, those whose bodies of the day are not past their retention any more: they were given more days
   * since somebody looked. Their bodies are found by the walk that begins when they are due again, so nothing about it
   * has to be remembered.
   */
  private async leaveOutUndue(query: Query, day: number, names: readonly string[], nowMs: number): Promise<string[]> {
    const due = new Set(dueChannels(await readBodyDays(query, names), day, nowMs, this.general));
    const undue = names.filter((name) => !due.has(name));
    if (undue.length > 0) await query(leaveOut, { day: dateOf(day), channels: undue });
    return undue;
  }

  private async eraseKept(nowMs: number, failures: unknown[], stopping: AbortSignal): Promise<void> {
    let after: string = lowestId;
    while (!stopping.aborted) {
      const page = await this.postgres.query<{ id: string }>(readKept, { after, limit: batchSize });
      const ids = page.map(({ id }) => id);
      for (const [day, ofDay] of byDay(ids, (id) => id)) {
        try {
          const channels = await readChannels(this.postgres, ofDay);
          await onDay(this.eraseUnneeded(day, channels, nowMs, stopping), undefined);
        } catch (error) {
          failures.push(error);
        }
      }
      if (page.length < batchSize) return;
      after = ids.at(-1)!;
      await this.clock.pause(pauseMs, stopping);
    }
  }

  /**
   * And forgets those of channels that are not due any more, in the transaction that leaves these out of what was
   * walked through: they would be lost to retention for ever otherwise. So would be one that has moved meanwhile, to a
   * channel that the day was walked through for.
   * @param kept the channel of each notification
   */
  private async eraseUnneeded(
    day: number,
    kept: ReadonlyMap<string, string>,
    nowMs: number,
    stopping: AbortSignal,
  ): Promise<void> {
    const names = [...new Set(kept.values())];
    const lookForUndue = async (query: Query) => {
      const undue = new Set(await this.leaveOutUndue(query, day, names, nowMs));
      return [...kept].flatMap(([id, channel]) => (undue.has(channel) ? [id] : []));
    };
    const undueBefore = new Set(await lookForUndue((statement, values) => this.postgres.query(statement, values)));
    const ids = [...kept.keys()].filter((id) => !undueBefore.has(id));
    const judged = await this.eraseAnswersOfUnneeded(day, ids, stopping);
    if (!judged || judged.unneeded.length + undueBefore.size === 0) return;
    await this.postgres.transaction(async (query) => {
      await query(lockTexts(day));
      const undue = new Set(await lookForUndue(query));
      const texts = judged.texts.filter(({ id }) => !undue.has(id));
      const { bodies, bytes, renewed } = await eraseTexts(query, day, texts);
      const erased = judged.unneeded.filter((id) => !undue.has(id) && !renewed.includes(id));
      const now = await query<{ id: string; channel: string }>(lockChannels(day), { ids: [...undue] });
      const moved = new Set(now.flatMap(({ id, channel }) => (kept.get(id) === channel ? [] : [id])));
      const forgotten = [...erased, ...undue].filter((id) => !moved.has(id));
      const [gone] = await query<{ bodies: number }>(forgetKept, { ids: forgotten });
      await query(noteKeptErased, { day: dateOf(day), bodies, bytes, kept: gone!.bodies });
      bodiesErasedCounted.inc({ because: 'retention' }, bodies);
    });
  }
}
