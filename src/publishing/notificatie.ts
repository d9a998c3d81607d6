import * as z from 'zod';
import { idempotencyKeyHeader, pathKey, replayedHeader } from '../openapi/idempotency-headers.js';
import { mostCharacteristics } from './parse-notification.js';

const dateTime = () => z.string().meta({ format: 'date-time' });

/** A notification as the standard writes it; the document shows it, and `parseNotification` reads it field by field. */
export const notificatieSchema = z
  .object({
    kanaal: z.string().min(1).max(50).describe('The naam of an existing kanaal.'),
    hoofdObject: z.url().min(1).describe('The object it is about.'),
    resource: z.string().min(1).max(100).describe('The kind of resource that changed.'),
    resourceUrl: z.url().min(1).describe('The resource that changed.'),
    actie: z.string().min(1).max(100).describe('The action, such as `create`, `update`, `destroy`.'),
    aanmaakdatum: dateTime().describe('Time of the action; not in the future. Sent on in UTC.'),
    kenmerken: z
      .record(z.string(), z.string().max(1000))
      .default({})
      .meta({ maxProperties: mostCharacteristics })
      .describe('Values that subscriptions filter on. Names in snake_case are sent on in camelCase.'),
    source: z.string().min(1).max(100).optional().describe('Origin of the notificatie. Sent on when given.'),
  })
  .meta({ id: 'Message', description: 'A notificatie: an event. The answer shows what receivers get.' });

/**
 * Without `format`: generators of clients (openapi-python-client) leave out an operation with a date-time in a header.
 */
const deliverAfter = z
  .string()
  .optional()
  .describe('RFC 3339. Receivers get it at this time or later; it is accepted now. At most a year ahead.');

export const putHeaders = z.object({ 'Deliver-After': deliverAfter });
export const postHeaders = z.object({ 'Idempotency-Key': idempotencyKeyHeader, 'Deliver-After': deliverAfter });

export const keyPath = z.object({
  key: pathKey.describe('Chosen by the publisher; 1 to 255 printable ASCII characters.'),
});

export const createdHeaders = z.object({
  'Notification-Id': z.string().meta({ format: 'uuid' }).describe('Its id; receivers get it as `webhook-id`.'),
  'Duplicate-Of': z
    .string()
    .meta({ format: 'uuid' })
    .optional()
    .describe(
      'Only where the kanaal has rules for that: the notificatie with the same content that was accepted before. This one is not sent.',
    ),
});

export const repeatedHeaders = createdHeaders.extend({ 'Idempotent-Replayed': replayedHeader });
