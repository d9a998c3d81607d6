import type { OperationalEvent } from '../operational-events/operational-events.service.js';

/**
 * An event that listeners are told of as it happens. A field that a kind of event does not have is absent; one
 * that it has is null where there is nothing to say.
 */
export type LiveEvent =
  | {
      event: 'notification.accepted' | 'notification.duplicate' | 'notification.expired';
      /** Of a duplicate: the one that it is a duplicate of. */
      notificationId: string;
      channel: string;
      publisher: string;
      /** Subscriptions that it is for. */
      deliveries: number;
    }
  | {
      event: 'delivery.attempted';
      notificationId: string;
      subscriptionId: string;
      /** Counts from 1. */
      attempt: number;
      durationMs: number;
      status: number | null;
      /** Of the delivery, after this attempt. */
      state: string;
      reason: string | null;
    }
  | OperationalEvent;

/** An event that is about the stream itself. */
export type StreamEvent =
  /** Some events are not told. `count`: so many; null: it is not known how many, perhaps none. */
  { event: 'events.missed'; count: number | null; reason: 'too-fast' | 'slow-reader' | 'not-kept' | 'not-recorded' };

export const eventKinds = [
  'notification.accepted',
  'notification.duplicate',
  'notification.expired',
  'delivery.attempted',
  'delivery.dead',
  'endpoint.opened',
  'endpoint.closed',
  'subscription.disabled',
  'subscription.enabled',
  'subscription.paused',
  'subscription.resumed',
] as const satisfies LiveEvent['event'][];
