import type { PublishOutcome } from './delivery-queue.js';

/** More than these, and the broker is too slow: publishing is refused. */
const most = 2000;
/** After a refusal nothing is published for as long as the refused deliveries wait in the ledger. */
const refusalPauseMs = 1000;
/**
 * From one look to the next. Time is counted in looks where the broker is waited for: a process that stood still has
 * neither sent nor read anything meanwhile, and looks once.
 */
export const betweenLooksMs = 1000;
/** A broker confirms in milliseconds, and within seconds while a queue elects its leader. */
const confirmedWithinLooks = 15;
/** One chunk shows whether a silent lane answers again. The dispatcher waits for it, and all that is due with it. */
const trialWithinLooks = 3;
export const betweenTrialsMs = 30_000;
/**
 * RabbitMQ takes 400 messages for a channel that waits for its queue (`credit_flow_default_credit`), and then reads
 * nothing more of the whole connection.
 */
const mostUnanswered = 200;
/** A queue that has refused something is tried again after seconds, with what waited for it. */
const fullForMs = 15_000;

export type Settle = (outcome: PublishOutcome) => void;

/** The chunks of one lane that were published, and what is known of the queue from how they are answered. */
export class UnconfirmedChunks {
  private looks = 0;
  /** After how many looks each was published, the oldest first. */
  private readonly since = new Map<Settle, number>();
  /** After how many looks the queue answered last. A broker that is slow answers, if only those before. */
  private heardAt = 0;
  /** And after how many looks the newest chunk was published of those that it answered. */
  private answeredSince = 0;
  private refusedUntil = -Infinity;
  private fullAt = -Infinity;
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

  /** It has refused a chunk of late: it holds as many as it may. */
  get isFull(): boolean {
    return this.now() - this.fullAt < fullForMs;
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
    this.since.set(settle, this.looks);
  }

  /** @returns false: it was settled before */
  take(settle: Settle, outcome: PublishOutcome): boolean {
    if (!this.since.delete(settle)) return false;
    if (outcome === 'refused') this.refusedUntil = this.now() + refusalPauseMs;
    return true;
  }

  /** The queue answered, if late: it works, although it may have refused. @returns whether that is news */
  heard(settle: Settle, isRefused = false): boolean {
    const { isSilent } = this;
    if (isRefused) this.fullAt = this.now();
    this.heardAt = this.looks;
    this.answeredSince = Math.max(this.answeredSince, this.since.get(settle) ?? 0);
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

  /**
   * To be called each second.
   * @returns whether the queue has been silent for so long that all its chunks were refused just now
   */
  look(): boolean {
    this.looks++;
    this.refusePassedOver();
    const [oldest] = this.since.values();
    const withinLooks = this.isSilent ? trialWithinLooks : confirmedWithinLooks;
    if (oldest === undefined || this.looks - Math.max(oldest, this.heardAt) < withinLooks) return false;
    this.isSilent = true;
    this.overdueAt = this.now();
    this.trialAt = this.overdueAt + betweenTrialsMs;
    this.unanswered += this.size;
    this.settleAll();
    return true;
  }

  /** A queue answers in order, more or less: such a chunk is lost, and the others do not wait with it. */
  private refusePassedOver(): void {
    for (const [settle, since] of this.since) {
      if (this.answeredSince - since < confirmedWithinLooks) return;
      settle('refused');
    }
  }

  private settleAll(): void {
    for (const settle of [...this.since.keys()]) settle('refused');
  }
}
