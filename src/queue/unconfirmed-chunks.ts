import type { PublishOutcome } from './delivery-queue.js';

/** More than these, and the broker is too slow: publishing is refused. */
const most = 2000;
/** After a refusal nothing is published for as long as the refused deliveries wait in the ledger. */
const refusalPauseMs = 1000;
/** A broker confirms in milliseconds, and within seconds while a queue elects its leader. */
const confirmedWithinMs = 15_000;
/** One chunk shows whether a silent lane answers again. The dispatcher waits for it, and all that is due with it. */
const trialWithinMs = 3000;
const betweenTrialsMs = 30_000;
/**
 * RabbitMQ takes 400 messages for a channel that waits for its queue (`credit_flow_default_credit`), and then reads
 * nothing more of the whole connection.
 */
const mostUnanswered = 200;

export type Settle = (outcome: PublishOutcome) => void;

/** The chunks of one lane that were published, and what is known of the queue from how they are answered. */
export class UnconfirmedChunks {
  /** Since when, the oldest first. */
  private readonly since = new Map<Settle, number>();
  private refusedUntil = -Infinity;
  /** Those that were settled without an answer, on this connection. */
  private unanswered = 0;
  private trialAt = -Infinity;
  private overdueAt = -Infinity;
  /** The socket takes no more at the moment. */
  isBufferFull = false;
  /** The queue has confirmed nothing for long: it has lost its majority, perhaps. */
  isSilent = false;

  /** @param now milliseconds, of a clock that runs steadily */
  constructor(private readonly now: () => number) {}

  get size(): number {
    return this.since.size;
  }

  get hasRoom(): boolean {
    return this.isSilent ? this.size === 0 && this.now() >= this.trialAt : this.size < most;
  }

  /** Silent, and of late: where nothing more is published nobody would learn that it is over. */
  get isTrouble(): boolean {
    return this.isSilent && this.now() - this.overdueAt < 2 * betweenTrialsMs;
  }

  /** Whether callers should leave their deliveries in the ledger. */
  get isAccepting(): boolean {
    return this.hasRoom && !this.isBufferFull && this.now() >= this.refusedUntil;
  }

  /** The connection can be of no more use to other lanes. */
  get blocksOthers(): boolean {
    return this.unanswered >= mostUnanswered;
  }

  add(settle: Settle): void {
    this.since.set(settle, this.now());
  }

  /** @returns false: it was settled before */
  take(settle: Settle, outcome: PublishOutcome): boolean {
    if (!this.since.delete(settle)) return false;
    if (outcome === 'refused') this.refusedUntil = this.now() + refusalPauseMs;
    return true;
  }

  /** The queue answered, if late: it works. @returns whether that is news */
  heard(): boolean {
    const { isSilent } = this;
    this.isSilent = false;
    this.unanswered = 0;
    return isSilent;
  }

  /** With the connection, or an alarm: the next one may lead to a queue that works. */
  refuseAll(): void {
    this.unanswered = 0;
    this.trialAt = -Infinity;
    this.settleAll();
  }

  /** @returns whether the queue has been silent for so long that all its chunks were refused just now */
  refuseOverdue(): boolean {
    const [oldest] = this.since.values();
    const withinMs = this.isSilent ? trialWithinMs : confirmedWithinMs;
    if (oldest === undefined || this.now() - oldest < withinMs) return false;
    this.isSilent = true;
    this.overdueAt = this.now();
    this.trialAt = this.overdueAt + betweenTrialsMs;
    this.unanswered += this.size;
    this.settleAll();
    return true;
  }

  private settleAll(): void {
    for (const settle of [...this.since.keys()]) settle('refused');
  }
}
