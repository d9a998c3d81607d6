import { z } from 'zod';
import { pageQuery } from '../infra/http/page-query.js';
import { deliveryStates } from '../ledger/delivery.js';
import { fromCursor } from './delivery-cursor.js';

const uuid = () => z.guid().toLowerCase();

export const deliveriesQuery = z.strictObject({
  notification: uuid().optional().describe('UUID of the notification, as in its `Notification-Id` and `webhook-id`.'),
  subscription: uuid().optional().describe('UUID of the subscription.'),
  state: z.enum(deliveryStates).optional().describe('Dead letters are in `failed`, `expired` and `unknown`.'),
  ...pageQuery('deliveries', fromCursor),
});
