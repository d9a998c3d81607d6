const mebibyte = 1024 * 1024;
/** The way to the ledger and back, and the difference between its clock and what this process takes for it. */
const slackMs = 1000;

/** Bounds on what publishers wait for. Times are in milliseconds. */
export interface PublishingLimits {
  /** Of all publications that wait for their turn to be written. */
  maxWaiting: { items: number; bytes: number };
  /** Of one batch. */
  maxBytes: number;
  /** A publication that has waited this long for its turn is refused. */
  turnWithinMs: number;
  /** The ledger writes a batch only if it begins to within this time. */
  beginWithinMs: number;
  /** When a batch's publishers are answered, whatever has become of it. */
  answerWithinMs: number;
}

/**
 * A publisher has its answer within 5/3 of the time that one statement may take, and a second: `turnWithinMs` and then
 * `answerWithinMs`. The latter leaves a statement that has begun in time the whole of its own limit: after that answer,
 * the server has either committed the batch or will not do it any more.
 *
 * `maxWaiting` is about what a machine writes within the turn; more would only be refused later. The bytes are what
 * publications and their deliveries may take of a process' memory, a few times over: they are held as text, as
 * parameters and as what is sent. One statement has at most some 20,000 deliveries, unless a single notification has
 * more.
 */
export function publishingLimits(statementMs: number): PublishingLimits {
  const turnWithinMs = Math.ceil(statementMs / 3);
  return {
    maxWaiting: { items: 20_000, bytes: 64 * mebibyte },
    maxBytes: 8 * mebibyte,
    turnWithinMs,
    beginWithinMs: turnWithinMs,
    answerWithinMs: turnWithinMs + statementMs + slackMs,
  };
}
