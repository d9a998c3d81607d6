/** One channel a subscription is about. The same channel may occur several times; entries are alternatives. */
export interface SubscribedChannel {
  readonly channel: string;
  /** Name, as the subscriber spelt it → the value it must have; `*` is any. */
  readonly filters: Readonly<Record<string, string>>;
}

export const deliveryGuarantees = ['at-least-once', 'at-most-once'] as const;
export type DeliveryGuarantee = (typeof deliveryGuarantees)[number];

/** Who wants what, as every process holds it in memory. */
export interface Subscription {
  readonly id: string;
  /** Who created it; only this application and superusers may change it. */
  readonly ownerClientId: string;
  readonly callbackUrl: string;
  /** The literal value of the `Authorization` header that is sent. A secret. */
  readonly auth: string;
  readonly channels: readonly SubscribedChannel[];
  /** Null: what its owner's subscriptions get (settings AT_LEAST_ONCE_SENDING_CUSTOMERS). */
  readonly deliveryGuarantee: DeliveryGuarantee | null;
  /** Its receiver said that it is gone for good: nothing is sent since then, until it is enabled again. */
  readonly disabledAt: Date | null;
}
