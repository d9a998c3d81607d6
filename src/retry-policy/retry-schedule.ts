/** How failed deliveries are repeated; the fields as the admin API names them. */
export interface RetryPolicy {
  /** Attempts after the first. */
  maxRetries: number;
  /** Seconds; multiplies every delay. */
  backoffFactor: number;
  /** The delay grows by this factor from failure to failure. */
  baseFactor: number;
  /** Seconds; no computed delay is longer. */
  maxDelaySeconds: number;
  /** Part of the delay, 0 to 1, that is varied at random, half up and half down. */
  jitter: number;
}

/** Open Notificaties' documented defaults: eight attempts over 23 h 55 m 25 s. */
export const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 7,
  backoffFactor: 25,
  baseFactor: 4,
  maxDelaySeconds: 52_000,
  jitter: 0,
};
