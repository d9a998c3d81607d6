import * as z from 'zod';
import { fromCursor as fromDeliveryCursor } from '../deliveries/delivery-cursor.js';
import { criteriaOf, searchQuery } from '../deliveries/search-query.js';
import type { Criteria } from '../deliveries/criteria.js';
import { pageQuery } from '../infra/http/page-query.js';
import { fromCursor } from './notification-cursor.js';

export const notificationsQuery = z.strictObject({
  ...searchQuery,
  unmatched: z
    .enum(['true'])
    .optional()
    .describe('Those that no subscription asked for: they have no delivery. Without it, all.'),
  ...pageQuery('notifications', fromCursor),
});

export const toCriteria = ({ unmatched, ...search }: z.output<typeof notificationsQuery>): Criteria => ({
  ...criteriaOf(search),
  isUnmatched: unmatched && true,
});

/** Of the deliveries of one notification. */
export const notificationQuery = z.strictObject(pageQuery('deliveries', fromDeliveryCursor));
