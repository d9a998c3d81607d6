import * as z from 'zod';
import { pageQuery } from '../infra/http/page-query.js';
import { isStorable } from '../infra/postgres/storable-text.js';
import { fromCursor } from './entry-cursor.js';

const text = (maxLength: number) =>
  z.string().min(1).max(maxLength).refine(isStorable, 'Contains U+0000 or half a surrogate pair.');

/** The years 1970 to 9999: nothing was noted before, and Postgres reads no more digits of a year. */
const [earliest, latest] = [0, Date.UTC(9999, 11, 31)];

const time = () =>
  z.iso
    .datetime({ offset: true })
    .transform((value) => new Date(Math.min(Math.max(Date.parse(value), earliest), latest)).toISOString());

export const auditQuery = z.strictObject({
  client: text(255)
    .optional()
    .describe('Client id of the application that asked for the change, or the name of the user.'),
  action: text(100).optional().describe('Exactly this one, such as `subscription.paused`.'),
  subject: text(2100)
    .optional()
    .describe('Exactly this one, such as `subscription/<uuid>`, `application/<uuid>`, or `retry-policy`.'),
  from: time().optional().describe('Not before this time.'),
  to: time().optional().describe('Before this time.'),
  ...pageQuery('entries', fromCursor),
});
