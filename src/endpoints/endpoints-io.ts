import { z } from 'zod';
import { isStorable } from '../infra/postgres/storable-text.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { originOf } from './origin.js';

export const endpointResetInput = z
  .strictObject({
    address: z
      .string()
      .min(1)
      .max(2048)
      .refine(isStorable, 'Contains U+0000 or half a surrogate pair.')
      .describe('As it is listed.'),
  })
  .meta({ id: 'EndpointReset' });

export const endpointListOutput = z
  .strictObject({
    endpoints: z.array(
      z
        .strictObject({
          address: z
            .string()
            .describe(
              'An origin (`https://host:port`) that does not answer, or a callback URL that answers with errors, or not at all while its origin does.',
            ),
          reason: z.string(),
          openedAt: z.iso.datetime().describe('Since then its deliveries are held.'),
          failureCount: z.int().describe('Calls that failed one after the other before that.'),
          probeCount: z.int().describe('Calls made since then to find out whether it has recovered.'),
          nextProbeAt: z.iso.datetime().describe('When the next one is due.'),
          subscriptionCount: z.int().describe('Subscriptions that lead there, disabled and paused ones included.'),
        })
        .meta({ id: 'OpenEndpoint' }),
    ),
  })
  .meta({ id: 'EndpointList' });

/** The one that has been open longest first. */
export function endpointsToShow(
  open: readonly OpenEndpoint[],
  subscriptions: readonly Subscription[],
): z.output<typeof endpointListOutput> {
  const counts = new Map(open.map((endpoint) => [endpoint.address, 0]));
  for (const { callbackUrl } of subscriptions) {
    for (const each of new Set([originOf(callbackUrl), callbackUrl])) {
      const count = counts.get(each);
      if (count !== undefined) counts.set(each, count + 1);
    }
  }
  return {
    endpoints: open
      .toSorted((one, other) => one.openedAt.getTime() - other.openedAt.getTime())
      .map((endpoint) => ({
        address: endpoint.address,
        reason: endpoint.reason,
        openedAt: endpoint.openedAt.toISOString(),
        failureCount: endpoint.failures,
        probeCount: endpoint.probes,
        nextProbeAt: endpoint.nextProbeAt.toISOString(),
        subscriptionCount: counts.get(endpoint.address)!,
      })),
  };
}
