import { Injectable, Logger } from '@nestjs/common';
import { access, constants } from 'node:fs/promises';
import { Config } from '../config/config.module.js';
import type { DropConnection } from '../infra/postgres/detach-partitions.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { valuesOf } from '../infra/postgres/statement.js';
import { dropExpired, type DaySize, type DropOutcome, type OldDay } from '../ledger/drop-expired.js';
import { dateOf, type Partition } from '../ledger/partitions.js';
import type { OwnFile } from './archive-file.js';
import { exportDay, type ExportOptions } from './export-day.js';
import {
  findExport,
  forgetKeptOf,
  forgetOldDays,
  noteDropped,
  noteExported,
  noteExportFailed,
  noteExportFile,
  noteKept,
} from './retention-days.js';
import { daysCounted, exportFailuresCounted } from './retention.counters.js';
import { isYetToErase } from './yet-to-erase.js';

/** Drops the days past RETENTION_DAYS, exports them before where that is wanted, and notes what it did. */
@Injectable()
export class DayDropper {
  private readonly logger = new Logger(DayDropper.name);

  constructor(
    private readonly postgres: Postgres,
    private readonly config: Config,
  ) {}

  /**
   * Any number of processes may call it; one does the work.
   * @throws the error of an export, when the round is over: an archive that fails for weeks is a task that fails
   */
  async dropExpired(stopping: AbortSignal): Promise<void> {
    const {
      RETENTION_DAYS: retentionDays,
      BODY_RETENTION_DAYS: bodyDays,
      EXPORT_DIR: directory,
    } = this.config.settings;
    if (directory !== undefined) await this.checkDirectory(directory);
    const failures: unknown[] = [];
    await dropExpired(this.postgres, retentionDays, this.logger, stopping, {
      ...(directory !== undefined && {
        copy: (connection: DropConnection, day: OldDay) =>
          this.export(connection, day, { directory, stopping }, failures),
        // Without a copy nothing of the day is left.
        isYetToErase: (connection: DropConnection, day: OldDay) =>
          isYetToErase(connection, day, { days: retentionDays, bodyDays }),
      }),
      asDropped: (inside, day, size) => noteGone(inside, day, size),
      afterwards: (day, outcome) => this.note(day, outcome),
    });
    if (failures.length > 0) throw failures[0];
  }

  /** Told when it is set, not when the first day is to be dropped. */
  private async checkDirectory(directory: string): Promise<void> {
    try {
      await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch (error) {
      this.logger.warn({ event: 'retention.export-directory-unusable', directory, error });
    }
  }

  /** @returns false: the day is kept, and exported again in the next round */
  private async export(
    connection: DropConnection,
    { day, partitions }: OldDay,
    { directory, stopping }: ExportOptions,
    failures: unknown[],
  ): Promise<boolean> {
    const date = dateOf(day);
    try {
      const [own] = await this.postgres.query<OwnFile>(findExport, { day: date });
      const note = (file: string, bytes: number) => this.postgres.query(noteExportFile, { day: date, file, bytes });
      const exported = await exportDay(connection, day, partitions, { directory, stopping, own, note });
      await this.postgres.query(noteExported, { day: date, ...exported });
      this.logger.log({ event: 'retention.day-exported', day: date, ...exported });
      return true;
    } catch (error) {
      if (stopping.aborted) return false;
      exportFailuresCounted.inc();
      this.logger.warn({ event: 'retention.export-failed', day: date, directory, error });
      const failure = (error instanceof Error ? error.message : String(error)).slice(0, 1000);
      await this.postgres.query(noteExportFailed, { day: date, failure });
      failures.push(error);
      return false;
    }
  }

  private async note({ day }: OldDay, outcome: DropOutcome): Promise<void> {
    daysCounted.inc({ outcome });
    if (outcome === 'kept-unfinished') await this.postgres.query(noteKept, { day: dateOf(day) });
    if (outcome === 'dropped') await this.postgres.query(forgetOldDays);
  }
}

async function noteGone(inside: DropConnection, { day, partitions }: OldDay, size: DaySize): Promise<void> {
  const [{ from, to }] = partitions as [Partition];
  await inside.query(noteDropped.text, valuesOf(noteDropped, { day: dateOf(day), ...size }));
  await inside.query(forgetKeptOf.text, valuesOf(forgetKeptOf, { from, to }));
}
