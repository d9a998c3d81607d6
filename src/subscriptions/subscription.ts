/** One channel a subscription is about. The same channel may occur several times; entries are alternatives. */
export interface SubscribedChannel {
  readonly channel: string;
  /** Name, as the subscriber spelt it → the value it must have; `*` is any. */
  readonly filters: Readonly<Record<string, string>>;
}

/** Who wants what, as every process holds it in memory. */
export interface Subscription {
  readonly id: string;
  /** Who created it; only this application and superusers may change it. */
  readonly ownerClientId: string;
  readonly callbackUrl: string;
  /** The literal value of the `Authorization` header that is sent. A secret. */
  readonly auth: string;
  readonly channels: readonly SubscribedChannel[];
}
