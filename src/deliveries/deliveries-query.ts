import { z } from 'zod';
import { deliveryStates } from '../ledger/delivery.js';
import { fromCursor } from './delivery-cursor.js';

const uuid = () => z.guid().toLowerCase();

export const deliveriesQuery = z.strictObject({
  notification: uuid().optional().describe('UUID of the notification, as in its `Notification-Id` and `webhook-id`.'),
  subscription: uuid().optional().describe('UUID of the subscription.'),
  state: z.enum(deliveryStates).optional().describe('Dead letters are in `failed`, `expired` and `unknown`.'),
  limit: z
    .string()
    .regex(/^\d{1,3}$/, 'Must be a whole number from 1 to 500.')
    .transform(Number)
    .pipe(z.int().min(1).max(500))
    .optional()
    .meta({ type: 'integer', pattern: undefined, minimum: 1, maximum: 500, default: 50 })
    .describe('Most deliveries in one page.'),
  cursor: z
    .string()
    .transform((text, context) => {
      const key = fromCursor(text);
      if (!key) context.addIssue({ code: 'custom', message: 'Is not the nextCursor of a page.', input: text });
      return key;
    })
    .optional()
    .describe('The `nextCursor` of the page before.'),
});
