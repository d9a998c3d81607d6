import { Injectable } from '@nestjs/common';
import { readAllBodyDays } from '../channels/read-body-days.js';
import { Config } from '../config/config.module.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

/** More than there are days in a year. Those that somebody has to look at are always among them. */
const mostDays = 500;

const reportDays = statement(
  'report-retention-days',
  `SELECT day::text AS day, erased_channels, walk_channels, bodies_erased::float8 AS bodies_erased,
     body_bytes::float8 AS body_bytes, bodies_kept::float8 AS bodies_kept, bodies_erased_at,
     exported_at, exported_file, exported_rows::float8 AS exported_rows, exported_bytes::float8 AS exported_bytes,
     export_failed_at, export_failure, kept_at, dropped_at, notifications::float8 AS notifications,
     deliveries::float8 AS deliveries, attempts::float8 AS attempts, bytes::float8 AS bytes
   FROM (
     SELECT * FROM retention_day
     ORDER BY dropped_at IS NULL AND export_failed_at IS NOT NULL DESC, dropped_at IS NULL AND kept_at IS NOT NULL DESC,
       day DESC
     LIMIT ${mostDays}
   ) AS shown
   ORDER BY shown.day DESC`,
);

export interface ReportedDay {
  day: string;
  erased_channels: string[];
  walk_channels: string[] | null;
  bodies_erased: number;
  body_bytes: number;
  bodies_kept: number;
  bodies_erased_at: Date | null;
  exported_at: Date | null;
  exported_file: string | null;
  exported_rows: number | null;
  exported_bytes: number | null;
  export_failed_at: Date | null;
  export_failure: string | null;
  kept_at: Date | null;
  dropped_at: Date | null;
  notifications: number | null;
  deliveries: number | null;
  attempts: number | null;
  bytes: number | null;
}

export interface RetentionReport {
  retentionDays: number;
  bodyRetentionDays: number | null;
  exportDirectory: string | null;
  /** Those that have days of their own, or had when they were removed. */
  channels: { name: string; bodyRetentionDays: number; isRemoved: boolean }[];
  /** The newest first; where there are too many, those that could not be dropped before the others. */
  days: ReportedDay[];
}

/** The settings of retention, and its work so far. */
@Injectable()
export class RetentionReports {
  constructor(
    private readonly postgres: Postgres,
    private readonly config: Config,
  ) {}

  async read(): Promise<RetentionReport> {
    const channels = await readAllBodyDays((read, values) => this.postgres.query(read, values));
    const { RETENTION_DAYS, BODY_RETENTION_DAYS, EXPORT_DIR } = this.config.settings;
    return {
      retentionDays: RETENTION_DAYS,
      bodyRetentionDays: BODY_RETENTION_DAYS ?? null,
      exportDirectory: EXPORT_DIR ?? null,
      channels: channels.flatMap(({ bodyRetentionDays, ...channel }) =>
        bodyRetentionDays === null ? [] : { ...channel, bodyRetentionDays },
      ),
      days: await this.postgres.query<ReportedDay>(reportDays),
    };
  }
}
