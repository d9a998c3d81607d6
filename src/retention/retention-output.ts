import * as z from 'zod';
import type { ReportedDay, RetentionReport } from './retention-report.service.js';

const time = () => z.iso.datetime();
const estimate = () => z.int().nullable().describe('As the planner of Postgres estimated it; null: it never did.');

const dayOutput = z.strictObject({
  day: z.iso.date().describe('By UTC: the day on which its notifications were accepted.'),
  bodies: z
    .strictObject({
      erased: z.int(),
      erasedBytes: z.int().describe('Length of the texts. The disk gets their space back when the day is dropped.'),
      kept: z
        .int()
        .describe(
          'Past their retention, but a delivery of theirs is not finished, or is a dead letter of the last week; or they are scheduled for later.',
        ),
      isUnderWay: z.boolean(),
      endedAt: time().nullable().describe('When the day was last walked through to its end.'),
      channels: z.array(z.string()).describe('Whose bodies were erased.'),
    })
    .nullable()
    .describe('null: none of the day was past its retention yet.'),
  exported: z
    .strictObject({ at: time(), file: z.string(), rows: z.int(), bytes: z.int().describe('Of the file.') })
    .nullable(),
  exportFailure: z
    .strictObject({ at: time(), reason: z.string() })
    .nullable()
    .describe('The last one, until it succeeds: meanwhile the day is kept.'),
  keptUnfinishedAt: time()
    .nullable()
    .describe(
      'When it was last to be dropped, and was still needed: by a delivery that is not finished, by a dead letter of the last week, or by a replay that has yet to come to it.',
    ),
  dropped: z
    .strictObject({
      at: time(),
      notifications: estimate(),
      deliveries: estimate(),
      attempts: estimate(),
      bytes: z.int().describe('That it took on the disk of Postgres.'),
    })
    .nullable(),
});

export const retentionOutput = z
  .strictObject({
    retentionDays: z.int(),
    bodyRetentionDays: z.int().nullable().describe('null: as long as the rows.'),
    exportDirectory: z.string().nullable().describe('null: days are dropped without being exported.'),
    channels: z
      .array(
        z.strictObject({
          name: z.string(),
          bodyRetentionDays: z.int(),
          isRemoved: z.boolean().describe('Its notifications are kept as long as it said.'),
        }),
      )
      .describe('Those that have days of their own, or had when they were removed.'),
    days: z
      .array(dayOutput)
      .describe(
        'Of which something was erased, exported, dropped or kept; newest first, at most 500. Those that could not be exported, or were kept, are always among them until they are dropped.',
      ),
  })
  .meta({ id: 'Retention' });

export const reportToShow = ({ days, ...rest }: RetentionReport): z.output<typeof retentionOutput> => ({
  ...rest,
  days: days.map(dayToShow),
});

function dayToShow(row: ReportedDay): z.output<typeof dayOutput> {
  const wasWalked = row.bodies_erased_at !== null || row.walk_channels !== null;
  return {
    day: row.day,
    bodies: wasWalked
      ? {
          erased: row.bodies_erased,
          erasedBytes: row.body_bytes,
          kept: row.bodies_kept,
          isUnderWay: row.walk_channels !== null,
          endedAt: row.bodies_erased_at?.toISOString() ?? null,
          channels: row.erased_channels,
        }
      : null,
    exported: row.exported_at && {
      at: row.exported_at.toISOString(),
      file: row.exported_file!,
      rows: row.exported_rows!,
      bytes: row.exported_bytes!,
    },
    exportFailure: row.export_failed_at && { at: row.export_failed_at.toISOString(), reason: row.export_failure! },
    keptUnfinishedAt: row.kept_at?.toISOString() ?? null,
    dropped: row.dropped_at && {
      at: row.dropped_at.toISOString(),
      notifications: row.notifications,
      deliveries: row.deliveries,
      attempts: row.attempts,
      bytes: row.bytes!,
    },
  };
}
