import type { HandedOut } from '../ledger/delivery.js';
import type { BodyMemory } from './body-memory.js';

/** A text that is too long for the queue's message, in use. */
interface Loan {
  bytes: Promise<Buffer | undefined>;
  users: number;
  end: () => void;
}

/** The endpoint that they are to be sent to. */
export interface Borrower {
  origin: string;
  isProven: boolean;
}

/** Texts in use, each borrowed once for all that use it at the same time. */
class Loans {
  private readonly loans = new Map<string, Loan>();

  /**
   * @param load is called when nobody has it; where it resolves to undefined, there is nothing to give back
   * @param end is called after the last has given it back, or when it could not be had
   * @throws what `load` throws
   */
  async borrow(key: string, load: () => Promise<Buffer | undefined>, end: Loan['end']): Promise<Buffer | undefined> {
    let loan = this.loans.get(key);
    if (!loan) this.loans.set(key, (loan = { bytes: load(), users: 0, end }));
    loan.users++;
    let bytes: Buffer | undefined;
    try {
      bytes = await loan.bytes;
    } finally {
      if (!bytes) this.giveBack(key);
    }
    return bytes;
  }

  /** Once for each that was borrowed. */
  giveBack(key: string): void {
    const loan = this.loans.get(key);
    if (!loan || --loan.users > 0) return;
    this.loans.delete(key);
    loan.end();
  }
}

/**
 * The bytes to send of a chunk's notifications that were too many to come with it, each once for all deliveries that
 * are sent at the same time. They are read when they are needed, and kept only while they are in use, within what all
 * chunks of the worker together may have in memory, the calls to one origin, and those to endpoints that are not proven.
 */
export class LargeBodies {
  /** By notification. */
  private readonly texts = new Loans();
  /** By origin and notification: an origin that keeps a text longer than the others do is the only one that it still counts for. */
  private readonly ofOrigins = new Loans();

  /** @param sizes in bytes, of the large texts, by notification; one that is past its retention is missing */
  constructor(
    private readonly sizes: ReadonlyMap<string, number>,
    private readonly memory: BodyMemory,
    private readonly read: (notificationId: string) => Promise<Buffer | undefined>,
  ) {}

  /**
   * For one delivery, which gives them back; undefined: the notification is past its retention.
   * @throws {Stopping} when the worker stops before there is memory for them
   */
  async borrow(
    { notificationId }: HandedOut,
    { origin, isProven }: Borrower,
    stopping: AbortSignal,
  ): Promise<Buffer | undefined> {
    const size = this.sizes.get(notificationId);
    if (size === undefined) return undefined;
    let text: Buffer | undefined;
    const load = async () => {
      await this.memory.acquireFor(origin, isProven, size);
      stopping.throwIfAborted(); // the end of the loan releases the memory
      text = await this.textOf(notificationId, size, stopping);
      return text;
    };
    const end = () => {
      if (text) this.texts.giveBack(notificationId);
      this.memory.releaseFor(origin, isProven, size);
    };
    return this.ofOrigins.borrow(keyOf(notificationId, origin), load, end);
  }

  /** Once for each that was borrowed. */
  giveBack({ notificationId }: Pick<HandedOut, 'notificationId'>, origin: string): void {
    this.ofOrigins.giveBack(keyOf(notificationId, origin));
  }

  private textOf(notificationId: string, size: number, stopping: AbortSignal): Promise<Buffer | undefined> {
    const load = async () => {
      await this.memory.acquire(size);
      stopping.throwIfAborted();
      return this.read(notificationId);
    };
    return this.texts.borrow(notificationId, load, () => this.memory.release(size));
  }
}

const keyOf = (notificationId: string, origin: string): string => `${notificationId} ${origin}`;
