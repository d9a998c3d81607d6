import type { IncomingHttpHeaders } from 'node:http';
import { describeError, isOurTrouble, isTroubleOfMachine } from '../outbound/describe-error.js';
import { ProxyTrouble } from '../outbound/egress-proxy.js';
import { isCertificateRefusal } from '../outbound/certificate-refusal.js';
import type { Outbound } from '../outbound/outbound.service.js';
import { tooManyLookups } from '../outbound/shared-lookup.js';
import { isSuccess } from '../outbound/success.js';
import { askedDelayMs } from './retry-after.js';
import { isClosed, type Connection } from './connection.js';
import { helpfulHeaders } from './helpful-headers.js';
import type { CallFacts, WebhookRequest, WebhookResponse } from './webhook-client.js';

/** Kept of the body of an answer that is no success: what an operator wants to read first. */
const keptBytes = 4096;
/** The rest of a body is read only so that the connection can be used again. One that is longer is not worth that. */
const readBytes = 262_144;
/** Nor is one that takes longer than this after the head. */
const bodyWithinMs = 1000;
/**
 * Before a call is tried again for which the egress proxy or this machine failed; the longer that goes on, the later.
 */
const postponedMs = 1000;
/**
 * A process that stood still for longer may be given up before its call is written: ten seconds after its last beat, of
 * which there is one every two. All that it lost counts together, and a busy one loses a second or two in a call.
 */
const longestStillMs = 4000;

/**
 * Of a request, the part that its call has to know. Not its body: of that, the memory is counted elsewhere, and only
 * until it is answered.
 */
export type Asked = Pick<WebhookRequest, 'timeoutMs' | 'keepsAnswer' | 'tls'>;

/** Of whom a call without an answer says nothing: see WebhookResponse. */
interface Blame {
  isOurs?: boolean;
  isUntrusted?: boolean;
}

/** The means that the calls of a process share. */
export interface SharedByCalls {
  /** Knows what of ours a call may wait for. */
  readonly outbound: Pick<Outbound, 'proxyFailingMs' | 'isInLine'>;
  /** Milliseconds since 1970: what a receiver that sends no `Date` means by the date of a `Retry-After`. */
  readonly now: () => number;
  /** By which time limits count, in milliseconds: while this process stands still, it stands still too. */
  runningNow(): number;
  /** The answer of a call was told. @returns whether the rest of its body may be read */
  tellEarly(call: Call): boolean;
  /** A call is over. */
  close(call: Call, wasToldEarly: boolean): void;
  /** An answer came. */
  reached(origin: string): void;
  /** This machine lacks what a connection to it needs. @returns for how long, in milliseconds */
  noteFailureOfMachine(origin: string): number;
}

/**
 * One call, whichever connection carries it: waiting → sent → answered → over. The answer of a 2xx that is not to be
 * kept is told when its head is there, whatever its body does. Any other answer is told when as much of its body is
 * there as is kept, or when no more can be had. All that comes after that is read and thrown away, within bounds.
 */
export class Call {
  /** By `runningNow`; moves when the head of the answer is there. */
  deadline: number;
  /** By the same time: as with a token, the other half at least is left for the receiver. */
  readonly halfTime: number;
  /** Nothing of it matters any more. */
  isOver = false;
  private readonly startedAt = performance.now();
  private readonly timeoutMs: number;
  private readonly keepsAnswer: boolean;
  private readonly showsCertificate: boolean;
  private connection: Connection | undefined;
  private connectMs: number | null = null;
  private firstByteMs: number | null = null;
  private wasSent = false;
  private isTold = false;
  private wasToldEarly = false;
  /** 0: there is no answer. */
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  private readonly kept: Buffer[] = [];
  private received = 0;
  private cut: () => void = () => {};

  constructor(
    readonly origin: string,
    { timeoutMs, keepsAnswer = false, tls }: Asked,
    private readonly resolve: (response: WebhookResponse) => void,
    private readonly shared: SharedByCalls,
  ) {
    this.timeoutMs = timeoutMs;
    this.keepsAnswer = keepsAnswer;
    this.showsCertificate = tls?.certificate !== undefined && origin.startsWith('https:');
    const now = shared.runningNow();
    this.deadline = now + timeoutMs;
    this.halfTime = now + timeoutMs / 2;
  }

  get hasFirstByte(): boolean {
    return this.firstByteMs !== null;
  }

  /** Which connection is to carry it, and how to end that when the call is over early. */
  carriedBy(connection: Connection, cut: () => void): void {
    this.connection = connection;
    connection.limitMs = this.timeoutMs;
    this.cut = cut;
  }

  /** It was to be written now: not after this process stood still, others may have gone on without it. */
  endIfStoodStill(): void {
    // Its connection is still being made, so its deadline has not moved.
    const ranMs = this.shared.runningNow() - (this.deadline - this.timeoutMs);
    if (this.elapsed() - ranMs > longestStillMs) this.postpone('this process stood still', null, 0);
  }

  /** The request is written right after this. `isKept`: over a connection that carried others before. */
  begin(isKept: boolean, cut: () => void): void {
    this.wasSent = true;
    this.connectMs = isKept ? null : (this.connection?.connectMs ?? null);
    this.firstByteMs = null;
    this.cut = cut;
  }

  firstByte(): void {
    this.firstByteMs ??= this.elapsed();
  }

  /** Not of an informational (1xx) response. */
  head(status: number, headers: IncomingHttpHeaders): void {
    if (this.isOver) return;
    this.firstByte();
    this.status = status;
    if (this.isBrief) return this.tellEarly();
    this.headers = headers;
    this.deadline = Math.min(this.deadline, this.shared.runningNow() + bodyWithinMs);
  }

  data(chunk: Buffer): void {
    if (this.isOver) return;
    if (!this.isTold) {
      // A copy: the chunk is a view of all that was read with it.
      this.kept.push(Buffer.from(chunk.subarray(0, keptBytes - this.received)));
      if (this.received + chunk.length >= keptBytes) this.tellEarly();
    }
    this.received += chunk.length;
    if (this.received > readBytes) this.end();
  }

  /** The answer is complete. */
  complete(): void {
    if (!this.isOver) this.close();
  }

  /** The connection was lost, or what came is no HTTP. After the head that changes nothing. */
  fail(reason: string, { isOurs = false, isUntrusted = false }: Blame = {}): void {
    if (this.isOver) return;
    const { wasSent } = this;
    if (this.status === 0) this.tell({ kind: 'unanswered', reason, wasSent, isOurs, isUntrusted, ...this.facts() });
    this.close();
  }

  failWith(error: Error): void {
    if (this.isOver) return;
    if (error instanceof ProxyTrouble) this.postpone(describeError(error), this.proxyFailingMs);
    else if (!this.wasSent && isTroubleOfMachine(error))
      this.postpone(describeError(error), this.shared.noteFailureOfMachine(this.origin));
    else if (isClosed(error)) this.closed(describeError(error));
    else this.fail(describeError(error), { isOurs: isOurTrouble(error), isUntrusted: isCertificateRefusal(error) });
  }

  /** By the receiver, whatever else is known of it. */
  closed(reason = 'the connection was closed'): void {
    if (this.isOver) return;
    const hasAsked = this.connection?.hasAskedForCertificate ?? false;
    // Servers refuse a certificate that way too, or the lack of one. With TLS 1.2 it is while the connection is being
    // made, so that nobody can tell whether the receiver has asked for one.
    const isUntrusted = !this.hasFirstByte && (hasAsked || this.showsCertificate);
    this.fail(hasAsked && isUntrusted ? `${reason}, after it was asked for a client certificate` : reason, {
      isUntrusted,
    });
  }

  /** Its receiver is not to blame for the time in which other names were looked up. */
  endInLine(): void {
    const name = this.connection?.lookingUp;
    if (this.wasSent || name === undefined || !this.shared.outbound.isInLine(name)) return;
    this.failWith(tooManyLookups());
    this.cut();
  }

  endOverdue(): void {
    this.endInLine(); // the process was too busy to look at its half-time
    if (this.isOver) return;
    const ours = this.connection?.waitsForOurs;
    const within = `within ${Math.round(this.timeoutMs) / 1000} s`;
    if (this.status === 0 && ours !== undefined) this.postpone(`no ${ours} ${within}`, this.proxyFailingMs);
    else if (this.status === 0) this.fail(`no answer ${within}`);
    this.end();
  }

  abandon(): void {
    if (this.status === 0) this.tell({ kind: 'abandoned', wasSent: this.wasSent, ...this.facts() });
    this.end();
  }

  /**
   * The egress proxy, this machine, or this process failed before anything was sent: like any other trouble of ours, it
   * costs the receiver no attempt.
   */
  private postpone(reason: string, forMs: number | null, againInMs = postponedMs): void {
    if (this.isOver) return;
    this.tell({ kind: 'postponed', reason, forMs, againInMs, wasSent: false, ...this.facts() });
    this.close();
  }

  private get proxyFailingMs(): number {
    const address = this.connection?.address;
    return address ? this.shared.outbound.proxyFailingMs(address) : 0;
  }

  private tellEarly(): void {
    this.tellAnswer();
    this.wasToldEarly = true;
    this.deadline = this.shared.runningNow() + bodyWithinMs;
    if (!this.shared.tellEarly(this)) this.end();
  }

  private end(): void {
    this.close();
    this.cut();
  }

  private close(): void {
    if (this.isOver) return;
    this.isOver = true;
    if (this.status !== 0) this.tellAnswer();
    this.shared.close(this, this.wasToldEarly);
  }

  private tellAnswer(): void {
    if (this.isTold) return;
    const { status, headers, kept } = this;
    this.shared.reached(this.origin);
    this.tell({
      kind: 'answered',
      status,
      headers: this.isBrief ? {} : helpfulHeaders(headers),
      body: kept.length === 0 ? '' : textOf(kept),
      askedDelayMs: isSuccess(status) ? null : askedDelayMs(headers, this.shared.now()),
      ...this.facts(),
    });
  }

  /** Of a success, nobody wants to know more than that it was one. */
  private get isBrief(): boolean {
    return isSuccess(this.status) && !this.keepsAnswer;
  }

  private tell(response: WebhookResponse): void {
    this.isTold = true;
    this.resolve(response);
  }

  private facts(): CallFacts {
    const { connectMs, firstByteMs } = this;
    return { durationMs: this.elapsed(), connectMs, firstByteMs, address: this.connection?.address ?? null };
  }

  private elapsed(): number {
    return performance.now() - this.startedAt;
  }
}

/** Half a character at the end, which the cut may leave, is left out. */
function textOf(chunks: Buffer[]): string {
  return new TextDecoder().decode(Buffer.concat(chunks), { stream: true });
}
