import { Injectable, Logger } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { readDays } from '../ledger/days.js';
import { eraseAnswers, eraseTexts, findUnfinished, lockTexts } from '../ledger/erase-bodies.js';
import { dateOf, lowestIdAt, partitionOf } from '../ledger/partitions.js';
import { byDay, onDay } from '../ledger/per-day.js';
import { readTextVersions } from '../ledger/text-versions.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { dueChannels } from './due-channels.js';
import { findOldBodies, type OldBodies } from './old-bodies.js';
import { bodiesErasedCounted } from './retention.counters.js';
import { beginWalk, endWalk, findDays, lockWalk, noteWalked, type DayRow, type Walk } from './retention-days.js';

const dayMs = 86_400_000;
/** Notifications that one step looks at. */
const batchSize = 1000;
/** A row without its text is written anew; without these the table would grow by all of them before it shrinks. */
const stepsBetweenVacuums = 20;
/** After each step: the walk may take an hour, and leaves the disk to those that deliver. */
const pauseMs = 50;

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
 * Erases the bodies of notifications that are past BODY_RETENTION_DAYS, or the days that their channel has of its own. Each day is
 * walked through once, in steps that remember how far they came; a channel that is given fewer days later has a walk
 * of its own. What has an unfinished delivery is remembered, and erased when that has ended. Any number of processes may run it: two that make
 * the same step at the same time do nothing that harms, and one of them notes it.
 */
@Injectable()
export class BodyRetention {
  private readonly logger = new Logger(BodyRetention.name);
  private readonly general: number | undefined;

  constructor(
    private readonly postgres: Postgres,
    private readonly catalogue: Catalogue,
    private readonly channels: ChannelDirectory,
    private readonly heartbeat: Heartbeat,
    private readonly clock: Clock,
    { settings }: Config,
  ) {
    this.general = settings.BODY_RETENTION_DAYS;
  }

  /** A day that fails keeps no other one waiting. @throws what the first of them failed of */
  async eraseOld(stopping: AbortSignal): Promise<void> {
    await this.catalogue.refresh();
    const days = (await readDays(this.postgres)).filter(({ isAway }) => !isAway).map(({ day }) => day);
    const nowMs = this.heartbeat.ledgerNow();
    const rows = await this.postgres.query<DayRow>(findDays, { from: dateOf(days[0] ?? 0) });
    const known = new Map(rows.map((row) => [row.day, row]));
    const failures: unknown[] = [];
    for (const day of days) {
      if (stopping.aborted) break;
      try {
        await this.eraseOf(day, known.get(dateOf(day)), nowMs, stopping);
      } catch (error) {
        failures.push(error);
      }
    }
    try {
      await this.eraseKept(failures, stopping);
    } catch (error) {
      failures.push(error);
    }
    if (failures.length > 0) throw failures[0];
  }

  private async eraseOf(day: number, row: DayRow | undefined, nowMs: number, stopping: AbortSignal): Promise<void> {
    if (row?.walk_channels) await this.walk(day, stopping);
    const done = new Set([...(row?.erased_channels ?? []), ...(row?.walk_channels ?? [])]);
    const due = dueChannels(this.channels.list(), day, nowMs, this.general).filter((name) => !done.has(name));
    if (stopping.aborted || due.length === 0) return;
    await this.postgres.query(beginWalk, { day: dateOf(day), channels: due, reached: lowestIdAt(day * dayMs) });
    await this.walk(day, stopping);
  }

  /** Goes on where the walk through that day had come. */
  private async walk(day: number, stopping: AbortSignal): Promise<void> {
    for (let steps = 1; !stopping.aborted; steps++) {
      const result = await onDay(this.step(day, stopping), 'over' as const);
      if (result === 'over') return;
      if (result !== 'more') return this.end(day, result);
      if (steps % stepsBetweenVacuums === 0) await this.vacuum(day, 'INDEX_CLEANUP OFF, TRUNCATE OFF');
      await this.clock.pause(pauseMs, stopping);
    }
  }

  /**
   * The texts go last, with the note of how far the walk came: a step that does not come so far is made again.
   * @returns the walk when there is nothing behind it; 'over': another process goes on with it, the day was dropped, or this one stops
   */
  private async step(day: number, stopping: AbortSignal): Promise<'more' | 'over' | Walk> {
    const date = dateOf(day);
    const [walk] = await this.postgres.query<Walk>(lockWalk, { day: date });
    if (!walk) return 'over';
    const [page] = await this.postgres.query<OldBodies>(findOldBodies(day), { ...walk, limit: batchSize });
    const judged = await this.eraseAnswersOfEnded(day, page!.due, stopping);
    if (!judged) return 'over';
    const reached = page!.reached ?? walk.reached;
    return this.postgres.transaction(async (query) => {
      await query(lockTexts(day));
      const [now] = await query<Walk>(lockWalk, { day: date });
      if (!now || !isDeepStrictEqual(now, walk)) return 'over';
      const { bodies, bytes, renewed } = await eraseTexts(query, day, judged.texts);
      const [kept] = await query<{ bodies: number }>(rememberKept, { ids: [...judged.unfinished, ...renewed] });
      await query(noteWalked, { day: date, reached, bodies, bytes, kept: kept!.bodies });
      bodiesErasedCounted.inc({ because: 'retention' }, bodies);
      return page!.rows === batchSize ? 'more' : { ...walk, reached };
    });
  }

  /** Of notifications of which every delivery has ended. @returns undefined: it was stopped before all were erased */
  private async eraseAnswersOfEnded(day: number, ids: readonly string[], stopping: AbortSignal) {
    const options = { stopping, rest: () => this.clock.pause(pauseMs, stopping) };
    const texts = await readTextVersions(this.postgres, day, ids);
    const unfinished = await findUnfinished(this.postgres, day, ids, options);
    if (!unfinished) return undefined;
    const ended = ids.filter((id) => !unfinished.has(id));
    // An operator may have retried one since.
    const again = await eraseAnswers(this.postgres, day, ended, options);
    if (!again) return undefined;
    for (const id of again) unfinished.add(id);
    const isEnded = (id: string) => !unfinished.has(id);
    return { ended: ended.filter(isEnded), texts: texts.filter(({ id }) => isEnded(id)), unfinished };
  }

  /** Ends with the vacuum: a walk whose vacuum failed is found again, and ended in the next round. */
  private async end(day: number, walk: Walk): Promise<void> {
    await this.vacuum(day, 'INDEX_CLEANUP ON');
    const values = { day: dateOf(day), ...walk };
    const [total] = await this.postgres.query<{ bodies: number; bytes: number; kept: number }>(endWalk, values);
    if (!total) return;
    this.logger.log({ event: 'retention.bodies-erased', day: dateOf(day), channels: walk.channels.length, ...total });
  }

  /** The former texts are on the disk until then. On the way only so that what is written next finds their space. */
  private async vacuum(day: number, options: string): Promise<void> {
    const tables = (['notification', 'attempt'] as const).map((table) => partitionOf(table, day));
    await onDay(this.postgres.upkeep.query(`VACUUM (${options}) ${tables.join(', ')}`), undefined);
  }

  private async eraseKept(failures: unknown[], stopping: AbortSignal): Promise<void> {
    let after = lowestIdAt(0);
    while (!stopping.aborted) {
      const page = await this.postgres.query<{ id: string }>(readKept, { after, limit: batchSize });
      const ids = page.map(({ id }) => id);
      for (const [day, ofDay] of byDay(ids, (id) => id)) {
        try {
          await onDay(this.eraseEnded(day, ofDay, stopping), undefined);
        } catch (error) {
          failures.push(error);
        }
      }
      if (page.length < batchSize) return;
      after = ids.at(-1)!;
      await this.clock.pause(pauseMs, stopping);
    }
  }

  private async eraseEnded(day: number, ids: string[], stopping: AbortSignal): Promise<void> {
    const judged = await this.eraseAnswersOfEnded(day, ids, stopping);
    if (!judged || judged.ended.length === 0) return;
    await this.postgres.transaction(async (query) => {
      await query(lockTexts(day));
      const { bodies, bytes, renewed } = await eraseTexts(query, day, judged.texts);
      const ids = judged.ended.filter((id) => !renewed.includes(id));
      const [gone] = await query<{ bodies: number }>(forgetKept, { ids });
      await query(noteKeptErased, { day: dateOf(day), bodies, bytes, kept: gone!.bodies });
      bodiesErasedCounted.inc({ because: 'retention' }, bodies);
    });
  }
}
