import { Injectable, Logger } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { readDaysKept } from '../ledger/days-kept.js';
import { eraseBodies } from '../ledger/erase-bodies.js';
import { lowestIdAt, partitionOf } from '../ledger/partitions.js';
import { onDay, onEachDay } from '../ledger/per-day.js';
import { dueChannels } from './due-channels.js';
import { findEnded, findOldBodies, type OldBodies } from './old-bodies.js';
import { bodiesErasedCounted } from './retention.counters.js';
import { beginWalk, dateOf, endWalk, lockWalk, noteWalked, readDays, type DayRow } from './retention-days.js';

const dayMs = 86_400_000;
/** Notifications that one transaction looks at. */
const batchSize = 1000;
/** A row without its text is written anew; without these the table would grow by all of them before it shrinks. */
const stepsBetweenVacuums = 20;
/** After each step: the walk may take an hour, and leaves the disk to those that deliver. */
const pauseMs = 50;

export const rememberKept = statement(
  'remember-kept-bodies',
  'INSERT INTO kept_body SELECT unnest($ids::uuid[]) ON CONFLICT DO NOTHING',
);

export const readKept = statement(
  'read-kept-bodies',
  'SELECT notification_id AS id FROM kept_body WHERE notification_id > $after ORDER BY notification_id LIMIT $limit',
);

export const forgetKept = statement(
  'forget-kept-body',
  'DELETE FROM kept_body WHERE notification_id = ANY ($ids::uuid[])',
);

export const noteKeptErased = statement(
  'note-kept-bodies-erased',
  `UPDATE retention_day SET bodies_erased = bodies_erased + $bodies, body_bytes = body_bytes + $bytes,
     bodies_kept = GREATEST(0, bodies_kept - $kept)
   WHERE day = $day::date`,
);

/**
 * Erases the bodies of notifications that are past BODY_RETENTION_DAYS, or the days that their channel has of its own. Each day is
 * walked through once, in small transactions that remember how far they came; a channel that is given fewer days later has a walk
 * of its own. What has an unfinished delivery is remembered, and erased when that has ended. Any number of processes may run it.
 */
@Injectable()
export class BodyRetention {
  private readonly logger = new Logger(BodyRetention.name);
  private readonly general: number | undefined;

  constructor(
    private readonly postgres: Postgres,
    private readonly catalogue: Catalogue,
    private readonly channels: ChannelDirectory,
    private readonly clock: Clock,
    { settings }: Config,
  ) {
    this.general = settings.BODY_RETENTION_DAYS;
  }

  async eraseOld(stopping: AbortSignal): Promise<void> {
    await this.catalogue.refresh();
    const { days, nowMs } = await readDaysKept(this.postgres);
    const rows = await this.postgres.query<DayRow>(readDays, { from: dateOf(days[0] ?? 0) });
    const known = new Map(rows.map((row) => [row.day, row]));
    for (const day of days) {
      const row = known.get(dateOf(day));
      if (row?.walk_channels) await this.walk(day, stopping);
      const done = new Set([...(row?.erased_channels ?? []), ...(row?.walk_channels ?? [])]);
      const due = dueChannels(this.channels.list(), day, nowMs, this.general).filter((name) => !done.has(name));
      if (stopping.aborted) return;
      if (due.length === 0) continue;
      const values = { day: dateOf(day), channels: due, reached: lowestIdAt(day * dayMs) };
      await this.postgres.query(beginWalk, values);
      await this.walk(day, stopping);
    }
    await this.eraseKept(stopping);
  }

  /** Goes on where the walk through that day had come. */
  private async walk(day: number, stopping: AbortSignal): Promise<void> {
    for (let steps = 1; !stopping.aborted; steps++) {
      const result = await onDay(this.step(day), 'over' as const);
      if (result === 'ended') await this.vacuum(day, 'INDEX_CLEANUP ON');
      if (result !== 'more') return;
      if (steps % stepsBetweenVacuums === 0) await this.vacuum(day, 'INDEX_CLEANUP OFF, TRUNCATE OFF');
      await this.clock.pause(pauseMs, stopping);
    }
  }

  /** @returns 'over': another process does it, or the day was dropped */
  private step(day: number): Promise<'more' | 'ended' | 'over'> {
    const date = dateOf(day);
    return this.postgres.transaction(async (query) => {
      const [walk] = await query<{ channels: string[]; reached: string }>(lockWalk, { day: date });
      if (!walk) return 'over';
      const [page] = await query<OldBodies>(findOldBodies(day), { ...walk, limit: batchSize });
      const { rows, reached, due, kept } = page!;
      const { bodies, bytes } = due.length > 0 ? await eraseBodies(query, day, due) : { bodies: 0, bytes: 0 };
      if (kept.length > 0) await query(rememberKept, { ids: kept });
      const values = { day: date, reached: reached ?? walk.reached, bodies, bytes, kept: kept.length };
      await query(noteWalked, values);
      bodiesErasedCounted.inc({ because: 'retention' }, bodies);
      if (rows === batchSize) return 'more';
      const [total] = await query<{ bodies: number; bytes: number; kept: number }>(endWalk, { day: date });
      this.logger.log({ event: 'retention.bodies-erased', day: date, channels: walk.channels.length, ...total });
      return 'ended';
    });
  }

  /** The former texts are on the disk until then. On the way only so that what is written next finds their space. */
  private async vacuum(day: number, options: string): Promise<void> {
    const tables = (['notification', 'attempt'] as const).map((table) => partitionOf(table, day));
    await onDay(this.postgres.upkeep.query(`VACUUM (${options}) ${tables.join(', ')}`), undefined);
  }

  private async eraseKept(stopping: AbortSignal): Promise<void> {
    let after = lowestIdAt(0);
    while (!stopping.aborted) {
      const page = await this.postgres.query<{ id: string }>(readKept, { after, limit: batchSize });
      const ids = page.map(({ id }) => id);
      await onEachDay(
        ids,
        (id) => id,
        async (day, ofDay) => [await this.eraseEnded(day, ofDay)],
      );
      if (page.length < batchSize) return;
      after = ids.at(-1)!;
      await this.clock.pause(pauseMs, stopping);
    }
  }

  private eraseEnded(day: number, ids: string[]): Promise<void> {
    return this.postgres.transaction(async (query) => {
      const ended = (await query<{ id: string }>(findEnded(day), { ids })).map(({ id }) => id);
      if (ended.length === 0) return;
      const { bodies, bytes } = await eraseBodies(query, day, ended);
      await query(forgetKept, { ids: ended });
      await query(noteKeptErased, { day: dateOf(day), bodies, bytes, kept: ended.length });
      bodiesErasedCounted.inc({ because: 'retention' }, bodies);
    });
  }
}
