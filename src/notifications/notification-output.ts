import * as z from 'zod';
import { toCursor as toDeliveryCursor } from '../deliveries/delivery-cursor.js';
import { attemptOutput, attemptToShow, deliveryOutput, deliveryToShow } from '../deliveries/delivery-output.js';
import { pageEnd } from '../deliveries/search-query.js';
import { deliveryStates } from '../ledger/delivery.js';
import { subscriptionStates } from '../subscriptions/subscription-state.js';
import { mostListed } from './find-notifications.js';
import { toCursor } from './notification-cursor.js';
import type {
  KnownNotification,
  ListedNotification,
  NotificationPage,
  ShownDelivery,
  WholeNotification,
} from './notification-reader.service.js';
import { storyEvents, type StoryEvent } from './story.js';

const time = () => z.iso.datetime();

const known = {
  id: z.uuid().describe('Receivers get it as `webhook-id`.'),
  channel: z.string(),
  publisher: z.string().describe('Client id.'),
  key: z
    .string()
    .nullable()
    .describe(
      'The key under which it was published: an `Idempotency-Key`, or that in the URL of a PUT. null: it had none, or that was not kept yet.',
    ),
  acceptedAt: time(),
  notBefore: time().nullable().describe('Its publisher asked not to send it earlier (`Deliver-After`).'),
};

const listedOutput = z
  .strictObject({
    ...known,
    mainObject: z
      .string()
      .nullable()
      .describe('`hoofdObject`; null, as the four below: its body was erased, or is longer than 64 KiB.'),
    resource: z.string().nullable(),
    resourceUrl: z.string().nullable(),
    action: z.string().nullable().describe('`actie`.'),
    characteristics: z.record(z.string(), z.string()).nullable().describe('`kenmerken`.'),
    deliveries: z
      .partialRecord(z.enum(deliveryStates), z.int())
      .describe(`How many of its deliveries are in each state; of more than ${mostListed}, only as many are counted.`),
  })
  .meta({ id: 'Notification' });

export const notificationPageOutput = z
  .strictObject({ notifications: z.array(listedOutput), ...pageEnd })
  .meta({ id: 'NotificationPage' });

const shownDeliveryOutput = z
  .strictObject({
    ...deliveryOutput.shape,
    owner: z
      .string()
      .nullable()
      .describe('Client id of the owner of its subscription; null: there is no such subscription.'),
    callbackUrl: z
      .string()
      .nullable()
      .describe('Of its subscription, as it is now; null: there is no such subscription.'),
    subscription: z
      .enum(subscriptionStates)
      .describe('How its subscription is now: to one that is disabled or deleted nothing is sent again.'),
    attempts: z.array(attemptOutput).describe('The latest 20; `GET /admin/v1/deliveries/…` has all.'),
  })
  .meta({ id: 'DeliveryOfNotification' });

const storyEventOutput = z
  .strictObject({
    at: time().nullable().describe('null: it happened here, but the ledger does not know when.'),
    event: z.enum(storyEvents),
    subscriptionId: z.uuid().nullable().describe('null: of the notification as a whole.'),
    attempt: z.int().nullable(),
    status: z.int().nullable().describe('HTTP status of the answer.'),
    reason: z.string().nullable().describe('Why, as far as it is known.'),
    by: z.string().nullable().describe('Client id of who asked for it; null: Heraut itself, or it is not known.'),
    until: time().nullable().describe('When what it waits for is due.'),
    count: z.int().nullable(),
  })
  .meta({ id: 'StoryEvent' });

export const notificationOutput = z
  .strictObject({
    ...known,
    headers: z
      .record(z.string(), z.string())
      .describe(
        'Of the request that published it, those that are kept. An `Idempotency-Key` is not among them: see `key`.',
      ),
    body: z.string().nullable().describe('The exact text that every receiver gets; null: it was erased.'),
    duplicates: z
      .array(z.strictObject({ publisher: z.string(), key: z.string() }))
      .describe(
        'Requests with the same content that were answered with this notification: at most 100, of those that had a key which is still remembered.',
      ),
    deliveryCount: z.strictObject({
      count: z.int().max(10_000),
      isExact: z.boolean().describe('false: there are more than that.'),
    }),
    deliveries: z.array(shownDeliveryOutput),
    nextCursor: z
      .string()
      .nullable()
      .describe(
        'Where the deliveries go on, and with them their story; null at their end. It may come before `limit` of them: a page ends as well behind the delivery, the first at the earliest, with which what its receivers answered comes to 4 MiB.',
      ),
    story: z
      .array(storyEventOutput)
      .describe(
        'The events of it and of the deliveries of this page, in order. Of several moments of one kind that a delivery was held or queued, the ledger keeps the last.',
      ),
  })
  .meta({ id: 'WholeNotification' });

const knownToShow = ({ id, channel, publisher, key, acceptedAt, notBefore }: KnownNotification) => ({
  id,
  channel,
  publisher,
  key,
  acceptedAt: acceptedAt.toISOString(),
  notBefore: notBefore?.toISOString() ?? null,
});

export const pageToShow = ({
  notifications,
  next,
  searchedTo,
}: NotificationPage): z.output<typeof notificationPageOutput> => ({
  notifications: notifications.map(listedToShow),
  nextCursor: next === undefined ? null : toCursor(next),
  searchedTo: searchedTo?.toISOString() ?? null,
});

const listedToShow = (notification: ListedNotification): z.output<typeof listedOutput> => ({
  ...knownToShow(notification),
  mainObject: notification.mainObject,
  resource: notification.resource,
  resourceUrl: notification.resourceUrl,
  action: notification.action,
  characteristics: notification.characteristics,
  deliveries: notification.deliveries,
});

export const notificationToShow = (whole: WholeNotification): z.output<typeof notificationOutput> => ({
  ...knownToShow(whole),
  // No Idempotency-Key: the ledger does not tell one from the key of a PUT, and sent as a header that is another key.
  headers: {
    ...(whole.notBefore && { 'Deliver-After': whole.notBefore.toISOString() }),
  },
  body: whole.body,
  duplicates: whole.duplicates,
  deliveryCount: whole.deliveryCount,
  deliveries: whole.deliveries.map(shownToShow),
  nextCursor: whole.next ? toDeliveryCursor(whole.next) : null,
  story: whole.story.map(eventToShow),
});

const shownToShow = ({ delivery, attempts, subscription }: ShownDelivery): z.output<typeof shownDeliveryOutput> => ({
  ...deliveryToShow(delivery),
  owner: subscription?.owner ?? null,
  callbackUrl: subscription?.callbackUrl ?? null,
  subscription: subscription?.state ?? 'deleted',
  attempts: attempts.map(attemptToShow),
});

const eventToShow = ({ at, until, ...event }: StoryEvent): z.output<typeof storyEventOutput> => ({
  ...event,
  at: at?.toISOString() ?? null,
  until: until?.toISOString() ?? null,
});
