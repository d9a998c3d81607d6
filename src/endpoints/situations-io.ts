import * as z from 'zod';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import { failuresOfDays, mostCounted, type Situation } from '../ledger/read-situations.js';
import { subscriptionIds } from './subscription-list.js';

export const situationsQuery = z.strictObject({ ids: subscriptionIds });

const count = (what: string) => z.int().max(mostCounted).describe(`${what}; ${mostCounted} means: at least as many.`);

export const situationsOutput = z
  .strictObject({
    situations: z.array(
      z
        .strictObject({
          subscriptionId: z.uuid(),
          held: count('Deliveries that are held, those that wait for their turn left out'),
          oldestHeldAt: z.iso.datetime().nullable().describe('When the oldest of these notifications was accepted.'),
          waiting: count(`Deliveries of ${failuresOfDays} days that wait for their next attempt, or for their time`),
          dead: count(`Dead letters of ${failuresOfDays} days`),
          lastFailure: z
            .strictObject({
              notificationId: z.uuid(),
              acceptedAt: z.iso.datetime(),
              error: z.string().nullable(),
              status: z.int().nullable(),
            })
            .nullable()
            .describe(
              `Of the newest notification of ${failuresOfDays} days whose delivery failed, for good or so far.`,
            ),
          endpoint: z
            .strictObject({
              address: z.string(),
              reason: z.string(),
              openedAt: z.iso.datetime(),
              nextProbeAt: z.iso.datetime(),
            })
            .nullable()
            .describe('Where its circuit breaker is open: since when, and why. null: it is closed.'),
        })
        .meta({ id: 'SubscriptionSituation' }),
    ),
  })
  .meta({ id: 'SubscriptionSituations' });

export const situationToShow = (
  { subscriptionId, held, oldestHeldAt, waiting, dead, lastFailure }: Situation,
  endpoint: OpenEndpoint | undefined,
): z.output<typeof situationsOutput>['situations'][number] => ({
  subscriptionId,
  held,
  oldestHeldAt: oldestHeldAt?.toISOString() ?? null,
  waiting,
  dead,
  lastFailure: lastFailure && { ...lastFailure, acceptedAt: lastFailure.acceptedAt.toISOString() },
  endpoint: endpoint
    ? {
        address: endpoint.address,
        reason: endpoint.reason,
        openedAt: endpoint.openedAt.toISOString(),
        nextProbeAt: endpoint.nextProbeAt.toISOString(),
      }
    : null,
});
