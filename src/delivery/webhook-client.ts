import type { NamedIdentity } from '../credentials/credentials.js';

export interface WebhookRequest {
  url: string;
  headers: Record<string, string>;
  /** The TLS identity of the receiver's subscription; undefined: the calls without one share their connections. */
  tls?: NamedIdentity | undefined;
  /** The bytes to send, exactly. */
  body: Buffer;
  /** Of the whole call: connecting, sending, and the head of the answer. */
  timeoutMs: number;
  /**
   * Whether the receiver may see it twice: then it may go out over a connection that was kept open, and is sent again
   * at once if that turns out to be closed. If it may not, the call gets a new connection, so that a loss is never our
   * own doing.
   */
  mayRepeat: boolean;
  /**
   * Of a call that may not repeat: whether it may come too late, because others send the next one where this process is
   * given up. Then it is postponed where the process stood still before it could be written.
   */
  mayBeOvertaken?: boolean;
  /** Whether headers and body are kept of a 2xx too: somebody wants to see the answer. */
  keepsAnswer?: boolean;
}

/** Facts about a call, whatever came of it. */
export interface CallFacts {
  /** Until it was known what came of it: of a 2xx, until the head of the answer was complete. */
  durationMs: number;
  /**
   * Time that connecting took, name lookup and TLS included; null: a connection that was kept open was used, or none
   * came about.
   */
  connectMs: number | null;
  /** From the start of the call to the first byte of an answer; null: not one came. */
  firstByteMs: number | null;
  /**
   * The IP address and the port that were called, an IPv6 address in brackets; or the address that was refused; null:
   * none.
   */
  address: string | null;
}

export interface Answered extends CallFacts {
  kind: 'answered';
  /** 200 to 999. */
  status: number;
  /** Those headers that help to find out why a call failed; none of a 2xx, unless the request `keepsAnswer`. */
  headers: Record<string, string>;
  /** The first 4 KB of the body as text, as far as it came within a second; of a 2xx as the headers. */
  body: string;
  /**
   * The wait that the receiver asks for with a `Retry-After` that can be read, at most a day; null: it asks for none.
   */
  askedDelayMs: number | null;
}

export type WebhookResponse =
  | Answered
  /**
   * No usable answer: `reason` says what happened in words an operator understands. `wasSent`: false only when
   * certainly no byte of the request left, so that the receiver cannot have seen it. `isOurs`: it says nothing of the
   * receiver; no name server answers, the address was refused, the credentials cannot be right, or this machine failed
   * while it was sending. `isUntrusted`: the TLS certificate of one side was nothing to the other, so it says nothing
   * of calls with another identity.
   */
  | (CallFacts & { kind: 'unanswered'; reason: string; wasSent: boolean; isOurs: boolean; isUntrusted: boolean })
  /** We gave up ourselves, because this process is stopping: no fault of the receiver. */
  | (CallFacts & { kind: 'abandoned'; wasSent: boolean })
  /**
   * No call was made: what it needs of somebody else than the receiver cannot be had now, and that for `forMs`: a
   * token, a key, a way through the egress proxy, or a file, a port or a network of this machine; or this process stood
   * still, and it may be too late. `forMs` is what this process has seen of it; null: nothing is ever given up for it.
   * It may be had in `againInMs`.
   */
  | (CallFacts & { kind: 'postponed'; reason: string; forMs: number | null; againInMs: number; wasSent: false });

/** Calls receivers. No redirect is followed. */
export abstract class WebhookClient {
  /**
   * Never rejects: all that a receiver can do is an answer or the lack of one. Time and memory per call are bounded.
   */
  abstract post(request: WebhookRequest): Promise<WebhookResponse>;
  /**
   * Ends every call under way as abandoned, and so each that is asked for after that: one may have waited for a token.
   */
  abstract abandonAll(): void;
  abstract close(): Promise<void>;
}
