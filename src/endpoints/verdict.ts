/** The verdict of one call on its endpoint. Only HTTP behaviour counts; our own waits say nothing. */
export type Verdict =
  /** Answered, with anything but 429 or 5xx. */
  | { kind: 'well' }
  /** 429 or 5xx: the URL is in trouble, and its origin is well. `askedDelayMs`: of a `Retry-After` on 429 or 503. */
  | { kind: 'troubled'; reason: string; askedDelayMs: number | undefined }
  /**
   * Timeout, refused, reset, or nonsense: the origin is in trouble, or the URL alone if others of its origin are
   * answered.
   */
  | { kind: 'unanswered'; reason: string }
  /**
   * The TLS certificate of one side was nothing to the other: the URL is in trouble for calls with this TLS identity,
   * or with none. Of its origin, which may take others, that says nothing.
   */
  | { kind: 'untrusted'; reason: string }
  /** There was no call, or we ended it ourselves. */
  | { kind: 'none' };

export const well: Verdict = { kind: 'well' };
export const none: Verdict = { kind: 'none' };
