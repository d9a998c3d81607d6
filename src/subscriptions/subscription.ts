import type { Credentials } from '../credentials/credentials.js';
import type { SigningKey } from '../signing/signing-key.js';

/** One channel a subscription is about. The same channel may occur several times; entries are alternatives. */
export interface SubscribedChannel {
  readonly channel: string;
  /** Name, as the subscriber spelt it → the value it must have; `*` is any. */
  readonly filters: Readonly<Record<string, string>>;
}

export const deliveryGuarantees = ['at-least-once', 'at-most-once'] as const;
export type DeliveryGuarantee = (typeof deliveryGuarantees)[number];

/** `per-object`: a later notification about the same object is sent only when the earlier one is delivered or dead. */
export const orderings = ['none', 'per-object'] as const;
export type Ordering = (typeof orderings)[number];

/** A subscription, as every process keeps it in memory. */
export interface Subscription {
  readonly id: string;
  /** The application that created it; only this one and superusers may change it. */
  readonly ownerClientId: string;
  readonly callbackUrl: string;
  /** The literal value of the `Authorization` header that is sent, unless its credentials make another. A secret. */
  readonly auth: string;
  readonly credentials: Credentials;
  readonly channels: readonly SubscribedChannel[];
  /** Null: that of its owner (setting AT_LEAST_ONCE_SENDING_CUSTOMERS). */
  readonly deliveryGuarantee: DeliveryGuarantee | null;
  /** When its receiver answered 410 Gone: nothing is sent from then on, until it is enabled again. */
  readonly disabledAt: Date | null;
  /** When an operator paused it: its deliveries are held from then on. */
  readonly pausedAt: Date | null;
  /** Seconds one call may take in all; null: NOTIFICATION_REQUESTS_TIMEOUT. */
  readonly timeoutSeconds: number | null;
  /** Calls that each worker may have open at once; null: as many as its endpoint gets. */
  readonly maxConcurrency: number | null;
  /** Calls a second, over all workers together; null: no limit. */
  readonly ratePerSecond: number | null;
  readonly ordering: Ordering;
  /** Mail address at which its owner is told of trouble with it; null: that of its application, if there is one. */
  readonly alertEmail: string | null;
  /** The newest first; those that were rotated and still sign among them, and perhaps some that no longer do. */
  readonly signingKeys: readonly SigningKey[];
  /** Why this process cannot send to it: its secrets cannot be decrypted here. Null, as a rule. */
  readonly unreadable: string | null;
  /** Those that this process has as if there were none. Left out, as a rule. */
  readonly unreadableSecrets?: readonly SubscriptionSecret[];
}

export type SubscriptionSecret = 'auth' | 'credentials' | 'signingKeys';

/** Rows and columns of its secrets, which are bound to them when they are encrypted. */
export const authPlace = (id: string): string => `subscription.auth/${id}`;
export const credentialsPlace = (id: string): string => `subscription.credentials/${id}`;
