/** A notification as it is accepted, with the subscriptions that get it. */
export interface Accepted {
  id: string;
  channel: string;
  publisher: string;
  body: string;
  subscriptionIds: string[];
}

/** How deliveries are handed out: to a queue that is there (leased), or, where it is not, to the dispatcher in a moment. */
export type HandOut =
  /** `owner`: the process whose memory is the queue; null where a broker is. */
  { state: 'queued'; owner: string | null } | { state: 'waiting'; delayMs: number };
