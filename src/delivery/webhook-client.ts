export interface WebhookRequest {
  url: string;
  headers: Record<string, string>;
  /** The bytes to send, exactly. */
  body: Buffer;
  /** Of the whole call: connecting, sending, and the answer. */
  timeoutMs: number;
}

export type WebhookResponse =
  | { kind: 'answered'; status: number; retryAfter: string | undefined; durationMs: number; excerpt: string }
  /**
   * No usable answer: `reason` says what happened in words an operator understands. `wasSent`: false only when certainly
   * no byte of the request left, so that the receiver cannot have seen it.
   */
  | { kind: 'unanswered'; reason: string; durationMs: number; wasSent: boolean }
  /** We gave up ourselves, because this process is stopping: no fault of the receiver. */
  | { kind: 'abandoned'; durationMs: number; wasSent: boolean };

/** Calls receivers. One call is one request: no redirect is followed, nothing is repeated. */
export abstract class WebhookClient {
  /** Never rejects: all that a receiver can do is an answer or the lack of one. Time and memory per call are bounded. */
  abstract post(request: WebhookRequest): Promise<WebhookResponse>;
  /** Ends every call under way as abandoned. */
  abstract abandonAll(): void;
  abstract close(): Promise<void>;
}
