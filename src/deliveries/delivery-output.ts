import * as z from 'zod';
import { deliveryStates, heldReasons } from '../ledger/delivery.js';
import type { DeliveryPage, KnownAttempt, KnownDelivery } from './delivery-reader.service.js';
import type { AttemptState } from '../delivery/attempt-states.js';
import { toCursor } from './delivery-cursor.js';
import { errorClasses, errorClassOf } from './error-class.js';
import { pageEnd } from './search-query.js';

const time = () => z.iso.datetime();

export const deliveryOutput = z
  .strictObject({
    notificationId: z.uuid(),
    subscriptionId: z.uuid(),
    channel: z.string(),
    acceptedAt: time(),
    state: z.enum(deliveryStates).describe('See docs/life-cycle.md.'),
    generation: z
      .int()
      .describe('Rises whenever the delivery is handed out again, cancelled before its end, or retried.'),
    attemptCount: z.int().describe('HTTP calls made, all in all.'),
    failureCount: z.int().describe('Failed calls that count for the retry schedule; a replay starts again at 0.'),
    replayCount: z.int().describe('Times it was sent again after its end.'),
    nextAttemptAt: time().nullable().describe('When the next attempt is due, while the delivery waits for one.'),
    heldFor: z
      .literal([...heldReasons, null])
      .meta({ type: 'string', nullable: true })
      .describe('Why it is held, while it is. See docs/life-cycle.md.'),
    lastStatus: z.int().nullable().describe('HTTP status of the last attempt; null: there was no answer.'),
    lastError: z.string().nullable(),
    errorClass: z
      .literal([...errorClasses, null])
      .meta({ type: 'string', nullable: true })
      .describe('Why it has not arrived, by its last attempt; null: it has arrived, or nothing has failed yet.'),
    endedAt: time().nullable(),
    replayId: z
      .uuid()
      .nullable()
      .describe(
        'The replay that last sent it again, cancelled or closed it with others: `GET /admin/v1/replays/{id}`.',
      ),
  })
  .meta({ id: 'Delivery' });

export const attemptOutput = z.strictObject({
  number: z.int().describe('Counts from 1.'),
  generation: z.int(),
  startedAt: time(),
  durationMs: z.int().describe('Until it was known what came of it: of a 2xx, until its headers were complete.'),
  connectMs: z
    .int()
    .nullable()
    .describe(
      'Time that connecting took, with name lookup and TLS; null: an open connection was used, or none came about.',
    ),
  firstByteMs: z.int().nullable().describe('From the start to the first byte of the answer; null: not one came.'),
  status: z.int().nullable().describe('HTTP status; null: there was no answer.'),
  error: z.string().nullable(),
  address: z
    .string()
    .nullable()
    .describe('IP address and port that were called. Like the two below it is kept of attempts that were no success.'),
  responseHeaders: z
    .record(z.string(), z.string())
    .nullable()
    .describe('Of the answer, the headers that help to find out why; null: there was no answer.'),
  responseBody: z
    .string()
    .nullable()
    .describe('The first 4 KB of the body, as far as they came within a second; null: there was no answer.'),
});

export const deliveryWithAttemptsOutput = z
  .strictObject({
    ...deliveryOutput.shape,
    attempts: z.array(attemptOutput),
    live: z
      .strictObject({
        attempt: z.int().describe('Counts from 1.'),
        status: z.enum(['sending', 'waiting']),
        lastStatus: z.int().nullable(),
        lastError: z.string().nullable(),
        startedAt: time().nullable().describe('When the call was begun; null while it waits.'),
        nextAttemptAt: time().nullable(),
      })
      .nullable()
      .describe(
        'Its step at this moment; null: none, or its first call was begun less than a second ago, or the live state is lost. Without `REDIS_URL` only the process that sends it knows: null where another process answers.',
      ),
  })
  .meta({ id: 'DeliveryWithAttempts' });

export const deliveryPageOutput = z
  .strictObject({
    deliveries: z.array(deliveryOutput),
    ...pageEnd,
  })
  .meta({ id: 'DeliveryPage' });

type DeliveryOutput = z.output<typeof deliveryOutput>;

export function deliveryToShow(delivery: KnownDelivery): DeliveryOutput {
  return {
    notificationId: delivery.notificationId,
    subscriptionId: delivery.subscriptionId,
    channel: delivery.channel,
    acceptedAt: delivery.acceptedAt.toISOString(),
    state: delivery.state,
    generation: delivery.generation,
    attemptCount: delivery.attempts,
    failureCount: delivery.failures,
    replayCount: delivery.replays,
    nextAttemptAt: delivery.nextAttemptAt?.toISOString() ?? null,
    heldFor: delivery.heldFor,
    lastStatus: delivery.lastStatus,
    lastError: delivery.lastError,
    errorClass: errorClassOf(delivery),
    endedAt: delivery.endedAt?.toISOString() ?? null,
    replayId: delivery.replayId,
  };
}

export const pageToShow = ({ deliveries, next, searchedTo }: DeliveryPage): z.output<typeof deliveryPageOutput> => ({
  deliveries: deliveries.map(deliveryToShow),
  nextCursor: next ? toCursor(next) : null,
  searchedTo: searchedTo?.toISOString() ?? null,
});

export function deliveryWithAttemptsToShow(
  delivery: KnownDelivery,
  attempts: KnownAttempt[],
  live: AttemptState | undefined,
): z.output<typeof deliveryWithAttemptsOutput> {
  return {
    ...deliveryToShow(delivery),
    attempts: attempts.map(attemptToShow),
    live: live && fits(live, delivery) ? live : null,
  };
}

/** It is kept until it expires where a delivery ended, or was held, without another call. */
const fits = ({ status }: AttemptState, { state }: KnownDelivery): boolean =>
  status === 'waiting' ? state === 'waiting' : state === 'queued' || state === 'sending';

export function attemptToShow({ details, startedAt, ...attempt }: KnownAttempt): z.output<typeof attemptOutput> {
  return {
    ...attempt,
    startedAt: startedAt.toISOString(),
    address: details?.address ?? null,
    responseHeaders: details?.headers ?? null,
    responseBody: details?.body ?? null,
  };
}
