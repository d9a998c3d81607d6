import * as z from 'zod';
import { mailAddress } from '../config/setting-types.js';
import { credentialsOutput, credentialsToShow } from '../credentials/credentials-io.js';
import { nextCursor } from '../infra/http/page-query.js';
import { heldReasons } from '../ledger/delivery.js';
import type { Held } from '../ledger/read-held.js';
import { deliveryGuarantees, orderings, type DeliveryGuarantee, type Subscription } from './subscription.js';

/** Null is one of the values, and not only `nullable`: OpenAPI 3.0 wants both where there is an `enum`. */
const guaranteeOrNull = () => z.literal([...deliveryGuarantees, null]).meta({ type: 'string', nullable: true });

export const atMostOnceExplained =
  '`at-most-once`: a call that may have arrived is never repeated; an answer other than 2xx, 429 and 503 among them, ends the ' +
  'delivery as `failed`, and no answer to a call that was sent as `unknown`; one that never left is tried again.';

const settings = {
  timeoutSeconds: z
    .number()
    .min(0.1)
    .max(300)
    .nullable()
    .describe('Seconds one call may take in all. null: as NOTIFICATION_REQUESTS_TIMEOUT says.'),
  maxConcurrency: z
    .int()
    .min(1)
    .max(10_000)
    .nullable()
    .describe('Calls that each worker may have open at once. null: as many as its endpoint gets.'),
  ratePerSecond: z
    .number()
    .min(0.001)
    .max(100_000)
    .nullable()
    .describe('Calls a second, over all workers together. null: no limit.'),
  ordering: z
    .enum(orderings)
    .describe(
      '`per-object`: a notification is sent only when the earlier ones with the same `hoofdObject` have arrived or are dead letters.',
    ),
  alertEmail: mailAddress
    .nullable()
    .describe(
      'Where its owner is told of trouble with it (see `/admin/v1/alert-rules`). null: at the address of its application, if there is one.',
    ),
};

export const subscriptionSettingsInput = z
  .strictObject({
    deliveryGuarantee: guaranteeOrNull().describe(
      `${atMostOnceExplained} null: the guarantee of its owner (setting AT_LEAST_ONCE_SENDING_CUSTOMERS).`,
    ),
    ...settings,
  })
  .partial();

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
    ...settings,
    credentials: credentialsOutput,
    disabledAt: z.iso
      .datetime()
      .nullable()
      .describe('When its receiver answered 410 Gone; nothing is sent since then. null: it is enabled.'),
    pausedAt: z.iso
      .datetime()
      .nullable()
      .describe('When an operator paused it; its deliveries are held since then. null: it is not paused.'),
  })
  .meta({ id: 'Subscription' });

/** More than these are not counted. */
export const mostHeldCounted = 10_000;

export const subscriptionWithHeldOutput = subscriptionOutput
  .extend({
    held: z
      .strictObject({
        count: z.int().max(mostHeldCounted).describe(`Deliveries; ${mostHeldCounted} means: at least as many.`),
        byReason: z
          .partialRecord(z.enum(heldReasons), z.int().min(1))
          .describe('Why, of those that were counted, which are the oldest. See docs/life-cycle.md.'),
        oldestAt: z.iso
          .datetime()
          .nullable()
          .describe('When the oldest of these notifications was accepted. null: nothing is held.'),
        isDropping: z
          .boolean()
          .describe('Its held deliveries are being dropped; until that is done it cannot be resumed.'),
      })
      .describe('Deliveries that are held for it.'),
  })
  .meta({ id: 'SubscriptionWithHeld' });

export const createdSubscriptionOutput = subscriptionOutput
  .extend({
    signingSecret: z
      .string()
      .nullable()
      .optional()
      .describe(
        'Where the server signs by default (SIGN_BY_DEFAULT): the secret that its deliveries are signed with, shown this once; otherwise null. Absent when the request is repeated under its Idempotency-Key: if the first answer was lost, make another signing key.',
      ),
  })
  .meta({ id: 'CreatedSubscription' });

export const subscriptionListOutput = z
  .strictObject({
    subscriptions: z.array(subscriptionOutput),
    count: z.int().describe('Of all that fit, on this page or not.'),
    nextCursor,
  })
  .meta({ id: 'SubscriptionList' });

/** Without secrets. */
export function subscriptionToShow(
  subscription: Subscription,
  effectiveGuarantee: DeliveryGuarantee,
): z.output<typeof subscriptionOutput> {
  const { id, ownerClientId, callbackUrl, channels, deliveryGuarantee, disabledAt, pausedAt } = subscription;
  const { timeoutSeconds, maxConcurrency, ratePerSecond, ordering, alertEmail } = subscription;
  return {
    id,
    ownerClientId,
    callbackUrl,
    channels: channels.map(({ channel, filters }) => ({ channel, filters: { ...filters } })),
    deliveryGuarantee,
    effectiveGuarantee,
    timeoutSeconds,
    maxConcurrency,
    ratePerSecond,
    ordering,
    alertEmail,
    credentials: credentialsToShow(subscription.credentials, subscription.unreadable),
    disabledAt: disabledAt?.toISOString() ?? null,
    pausedAt: pausedAt?.toISOString() ?? null,
  };
}

export const heldToShow = ({ oldestAt, ...held }: Held): z.output<typeof subscriptionWithHeldOutput>['held'] => ({
  ...held,
  oldestAt: oldestAt?.toISOString() ?? null,
});
