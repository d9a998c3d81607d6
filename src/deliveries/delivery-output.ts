import { z } from 'zod';
import { deliveryStates, heldReasons } from '../ledger/delivery.js';
import type { DeliveryPage, KnownAttempt, KnownDelivery } from './delivery-reader.service.js';
import type { AttemptState } from '../delivery/attempt-states.js';
import { toCursor } from './delivery-cursor.js';

const time = () => z.iso.datetime();

export const deliveryOutput = z
  .strictObject({
    notificationId: z.uuid(),
    subscriptionId: z.uuid(),
    channel: z.string(),
    acceptedAt: time(),
    state: z.enum(deliveryStates).describe('See docs/life-cycle.md.'),
    generation: z.int().describe('Rises whenever the delivery is handed out again, cancelled or retried.'),
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
    endedAt: time().nullable(),
  })
  .meta({ id: 'Delivery' });

const attemptOutput = z.strictObject({
  number: z.int().describe('Counts from 1.'),
  generation: z.int(),
  startedAt: time(),
  durationMs: z.int(),
  status: z.int().nullable(),
  error: z.string().nullable(),
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
        nextAttemptAt: time().nullable(),
      })
      .nullable()
      .describe(
        'The present state of its retries; null: it is not being retried, or this is its first attempt, or the live state is lost.',
      ),
  })
  .meta({ id: 'DeliveryWithAttempts' });

export const deliveryPageOutput = z
  .strictObject({
    deliveries: z.array(deliveryOutput),
    nextCursor: z
      .string()
      .nullable()
      .describe('Where the list goes on; null at its end. A page may be short, or empty, although the list goes on.'),
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
    endedAt: delivery.endedAt?.toISOString() ?? null,
  };
}

export function pageToShow({ deliveries, next }: DeliveryPage): z.output<typeof deliveryPageOutput> {
  return { deliveries: deliveries.map(deliveryToShow), nextCursor: next ? toCursor(next) : null };
}

export function deliveryWithAttemptsToShow(
  delivery: KnownDelivery,
  attempts: KnownAttempt[],
  live: AttemptState | undefined,
): z.output<typeof deliveryWithAttemptsOutput> {
  return {
    ...deliveryToShow(delivery),
    attempts: attempts.map((attempt) => ({ ...attempt, startedAt: attempt.startedAt.toISOString() })),
    live: live ?? null,
  };
}
