import { z } from 'zod';
import { deliveryGuarantees, type DeliveryGuarantee, type Subscription } from './subscription.js';

/** Null is one of the values, and not only `nullable`: OpenAPI 3.0 wants both where there is an `enum`. */
const guaranteeOrNull = () => z.literal([...deliveryGuarantees, null]).meta({ type: 'string', nullable: true });

export const subscriptionChangesInput = z
  .strictObject({
    deliveryGuarantee: guaranteeOrNull().describe(
      'null: the guarantee of its owner (setting AT_LEAST_ONCE_SENDING_CUSTOMERS).',
    ),
  })
  .partial()
  .meta({ id: 'SubscriptionChanges' });

export const subscriptionOutput = z
  .strictObject({
    id: z.uuid(),
    ownerClientId: z.string().describe('Client id of the application that created it.'),
    callbackUrl: z.string(),
    channels: z
      .array(z.strictObject({ channel: z.string(), filters: z.record(z.string(), z.string()) }))
      .describe('Alternatives; the same channel may occur several times.'),
    deliveryGuarantee: guaranteeOrNull().describe(
      'The guarantee that was set for it; null: none, so its owner’s counts.',
    ),
    effectiveGuarantee: z.enum(deliveryGuarantees).describe('The guarantee that its deliveries get.'),
    disabledAt: z.iso
      .datetime()
      .nullable()
      .describe('When its receiver answered 410 Gone; nothing is sent since then. null: it is enabled.'),
  })
  .meta({ id: 'Subscription' });

export const subscriptionListOutput = z
  .strictObject({ subscriptions: z.array(subscriptionOutput) })
  .meta({ id: 'SubscriptionList' });

/** Without `auth`, which is the receiver's secret. */
export function subscriptionToShow(
  { id, ownerClientId, callbackUrl, channels, deliveryGuarantee, disabledAt }: Subscription,
  effectiveGuarantee: DeliveryGuarantee,
): z.output<typeof subscriptionOutput> {
  return {
    id,
    ownerClientId,
    callbackUrl,
    channels: channels.map(({ channel, filters }) => ({ channel, filters: { ...filters } })),
    deliveryGuarantee,
    effectiveGuarantee,
    disabledAt: disabledAt?.toISOString() ?? null,
  };
}
