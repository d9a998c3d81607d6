import * as z from 'zod';
import { uuid } from '../infra/http/input-parts.js';
import { notificatieSchema } from '../publishing/notificatie.js';
import type { Fetched, FetchedPage } from './pull.service.js';
import { fromCursor, toCursor } from './pull-cursor.js';

const number = (most: number, least: number) =>
  z
    .string()
    .regex(/^\d{1,3}$/, `Must be a whole number from ${least} to ${most}.`)
    .transform(Number)
    .pipe(z.int().min(least).max(most))
    .optional();

/** Before the year 10889 the 48 bits of an id are enough. */
const latest = Date.UTC(9999, 11, 31);

export const pullQuery = z.strictObject({
  cursor: z
    .string()
    .transform((text, context) => {
      const cursor = fromCursor(text);
      if (!cursor) context.addIssue({ code: 'custom', message: 'Is not the cursor of an answer.', input: text });
      return cursor;
    })
    .optional()
    .describe('The `cursor` of the answer before: what came up to it is not given again.'),
  from: z.iso
    .datetime({ offset: true })
    .transform((text) => Math.min(Math.max(Date.parse(text), 0), latest))
    .optional()
    .describe(
      'Where to begin without a cursor: with those that have this `acceptedAt` or a later one, and some of a few seconds before. Else with the oldest that is kept.',
    ),
  limit: number(500, 1)
    .meta({ type: 'integer', pattern: undefined, minimum: 1, maximum: 500, default: 100 })
    .describe('Most notificaties in one answer.'),
  wait: number(30, 0)
    .meta({ type: 'integer', pattern: undefined, minimum: 0, maximum: 30, default: 0 })
    .describe('Seconds to wait for the next one, where there is none.'),
});

const fetchedOutput = z
  .object({
    id: z.string().meta({ format: 'uuid' }).describe('As in `webhook-id` and `Notification-Id`.'),
    acceptedAt: z.iso.datetime(),
    isDelivered: z.boolean().describe('The callback has answered it with 2xx, or it was acknowledged.'),
    notificatie: notificatieSchema.optional().describe('Exactly as it is sent; not there where `absent` says why.'),
    absent: z
      .enum(['scheduled', 'erased'])
      .optional()
      .describe('`scheduled`: its publisher wants it to be sent later. `erased`: its content was removed.'),
    deliverAfter: z.iso
      .datetime()
      .optional()
      .describe('Of one that is scheduled: read it again after that, with `from`. Its publisher may still change it.'),
  })
  .meta({ id: 'FetchedNotificatie' });

export const pullOutput = z
  .object({
    notificaties: z.array(fetchedOutput).describe('In the order of their ids: that of their acceptance.'),
    cursor: z.string().describe('Where to go on, at any time.'),
    more: z.boolean().describe('There may be more: go on at once. Otherwise come back later, or `wait`.'),
  })
  .meta({ id: 'FetchedNotificaties' });

/** As text: what is in `notificatie` are the bytes that are sent. */
export function pageToSend({ notifications, next, isMore }: FetchedPage): string {
  const notificaties = notifications.map(fetchedToSend).join(',');
  return `{"notificaties":[${notificaties}],"cursor":"${toCursor(next)}","more":${isMore}}`;
}

function fetchedToSend({ id, acceptedAt, state, deliverAfter, body }: Fetched): string {
  const about = { id, acceptedAt: acceptedAt.toISOString(), isDelivered: state === 'delivered' };
  if (deliverAfter) return JSON.stringify({ ...about, absent: 'scheduled', deliverAfter: deliverAfter.toISOString() });
  if (body === null) return JSON.stringify({ ...about, absent: 'erased' });
  return `${JSON.stringify(about).slice(0, -1)},"notificatie":${body}}`;
}

export const acknowledgementInput = z
  .strictObject({
    ids: z
      .array(uuid())
      .min(1)
      .max(500)
      .describe('Of the notificaties that the subscriber has, whether it fetched them or not.'),
  })
  .meta({ id: 'Acknowledgement' });

export const acknowledgedOutput = z
  .object({
    ended: z
      .array(z.string().meta({ format: 'uuid' }))
      .describe(
        'Those that are not sent any more. The others were delivered or cancelled before, or are scheduled, or are not of this abonnement.',
      ),
  })
  .meta({ id: 'Acknowledged' });
