import { z } from 'zod';
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
  client: text(255).optional().describe('Client id of the application that asked for the change.'),
  action: text(100).optional().describe('Exactly this one, such as `subscription.paused`.'),
  subject: text(2100)
    .optional()
    .describe('Exactly this one, such as `subscription/<uuid>`, `application/<uuid>`, or `retry-policy`.'),
  from: time().optional().describe('Not before this time.'),
  to: time().optional().describe('Before this time.'),
  limit: z
    .string()
    .regex(/^\d{1,3}$/, 'Must be a whole number from 1 to 500.')
    .transform(Number)
    .pipe(z.int().min(1).max(500))
    .optional()
    .meta({ type: 'integer', pattern: undefined, minimum: 1, maximum: 500, default: 50 })
    .describe('Most entries in one page.'),
  cursor: z
    .string()
    .transform((value, context) => {
      const key = fromCursor(value);
      if (!key) context.addIssue({ code: 'custom', message: 'Is not the nextCursor of a page.', input: value });
      return key;
    })
    .optional()
    .describe('The `nextCursor` of the page before.'),
});
