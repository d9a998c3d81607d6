/** One channel a subscription is about. The same channel may occur several times; entries are alternatives. */
export interface SubscribedChannel {
  readonly channel: string;
  /** Name, as the subscriber spelt it → the value it must have; `*` is any. */
  readonly filters: Readonly<Record<string, string>>;
}

export const deliveryGuarantees = ['at-least-once', 'at-most-once'] as const;
export type DeliveryGuarantee = (typeof deliveryGuarantees)[number];

/** A subscription, as every process keeps it in memory. */
export interface Subscription {
  readonly id: string;
  /** The application that created it; only this one and superusers may change it. */
  readonly ownerClientId: string;
  readonly callbackUrl: string;
  /** The literal value of the `Authorization` header that is sent. A secret. */
  readonly auth: string;
  readonly channels: readonly SubscribedChannel[];
  /** Null: that of its owner (setting AT_LEAST_ONCE_SENDING_CUSTOMERS). */
  readonly deliveryGuarantee: DeliveryGuarantee | null;
  /** When its receiver answered 410 Gone: nothing is sent from then on, until it is enabled again. */
  readonly disabledAt: Date | null;
}
