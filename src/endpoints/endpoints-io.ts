import * as z from 'zod';
import { storable } from '../infra/http/input-parts.js';
import type { Pace } from '../ledger/held-subscriptions.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { endpointsOf, longestAddress } from './origin.js';

export const endpointResetInput = z
  .strictObject({
    address: z
      .string()
      .min(1)
      .max(longestAddress)
      .check(storable)
      .describe(
        'As it is listed; where none reads like that, the callback URL in any spelling. Where all subscriptions with this callback URL have a TLS identity of their own, the URL stands for those of all these identities. An origin (`https://host:port`) is only itself.',
      ),
  })
  .meta({ id: 'EndpointReset' });

export const mostPaced = 500;
/** Of an endpoint. */
const mostIds = 20;

export const endpointListOutput = z
  .strictObject({
    endpoints: z.array(
      z
        .strictObject({
          address: z
            .string()
            .describe(
              'An origin (`https://host:port`) that does not answer, or a callback URL, as URLs are normally written, that answers with errors, or not at all while its origin does; `URL with TLS identity …`: for the subscriptions that call it with this certificate or authority of their own.',
            ),
          reason: z.string(),
          openedAt: z.iso.datetime().describe('Since then its deliveries are held.'),
          failureCount: z.int().describe('Calls that failed one after the other before that.'),
          probeCount: z
            .int()
            .describe(
              'Probes since then: deliveries that were to find out whether it has recovered, those that came to no call included.',
            ),
          nextProbeAt: z.iso.datetime().describe('When the next one is due; while one is under way, at the latest.'),
          subscriptionCount: z.int().describe('Subscriptions that lead there, disabled and paused ones included.'),
          subscriptionIds: z.array(z.uuid()).describe('Their ids, the oldest first; at most 20.'),
        })
        .meta({ id: 'OpenEndpoint' }),
    ),
    paced: z
      .array(
        z
          .strictObject({
            subscriptionId: z.uuid(),
            callbackUrl: z.string(),
            window: z
              .int()
              .describe(
                'So many deliveries may be released and not yet settled: what its endpoint has shown it can take.',
              ),
            outstanding: z.int().describe('So many were, when it was looked at last.'),
            heldAt: z.iso.datetime().describe('When one was last held, to a few seconds.'),
          })
          .meta({ id: 'PacedSubscription' }),
      )
      .describe(
        `Subscriptions for which more arrived than their endpoint could take, the circuit breaker of which is not open: what is held for them goes out as it keeps up. At most ${mostPaced}.`,
      ),
  })
  .meta({ id: 'EndpointList' });

/**
 * The one that has been open longest first.
 * @param subscriptions the oldest first
 */
export function endpointsToShow(
  open: readonly OpenEndpoint[],
  subscriptions: readonly Subscription[],
  paces: readonly Pace[],
): z.output<typeof endpointListOutput> {
  const leading = new Map(open.map((endpoint): [string, string[]] => [endpoint.address, []]));
  const byId = new Map<string, Subscription>();
  for (const subscription of subscriptions) {
    byId.set(subscription.id, subscription);
    for (const each of endpointsOf(subscription)) leading.get(each)?.push(subscription.id);
  }
  const isOpen = (subscription: Subscription) => endpointsOf(subscription).some((address) => leading.has(address));
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
        subscriptionCount: leading.get(endpoint.address)!.length,
        subscriptionIds: leading.get(endpoint.address)!.slice(0, mostIds),
      })),
    paced: paces.flatMap(({ heldAt, ...pace }) => {
      const subscription = byId.get(pace.subscriptionId);
      if (!subscription || isOpen(subscription)) return [];
      return [{ ...pace, callbackUrl: subscription.callbackUrl, heldAt: heldAt.toISOString() }];
    }),
  };
}
