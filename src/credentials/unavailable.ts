/** Why the authorization of a call cannot be had, so that it is not made. */
export interface Unavailable {
  /** In words an operator understands; no secret is in it. */
  reason: string;
  /**
   * The credentials are refused, or cannot be right: trying again is as with a receiver that refuses. Otherwise it is
   * the trouble of somebody else than the receiver, and costs it no attempt.
   */
  isRefused: boolean;
  /** It is our own trouble: nothing is known of the endpoint that was to be asked. Left out, as a rule. */
  isOurs?: boolean;
  /** How long it has been so. */
  forMs: number;
  /** When it may be better. */
  againInMs: number;
}
