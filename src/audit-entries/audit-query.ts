import * as z from 'zod';
import { storable, timeInput } from '../infra/http/input-parts.js';
import { pageQuery } from '../infra/http/page-query.js';
import { fromCursor } from './entry-cursor.js';

const text = (maxLength: number) => z.string().min(1).max(maxLength).check(storable);

export const auditQuery = z.strictObject({
  client: text(255)
    .optional()
    .describe('Client id of the application that asked for the change, or the name of the user.'),
  action: text(100).optional().describe('Exactly this one, such as `subscription.paused`.'),
  subject: text(2100)
    .optional()
    .describe('Exactly this one, such as `subscription/<uuid>`, `application/<uuid>`, or `retry-policy`.'),
  from: timeInput().optional().describe('Not before this time.'),
  to: timeInput().optional().describe('Before this time.'),
  ...pageQuery('entries', fromCursor),
});
