import type { HandedOut } from '../ledger/delivery.js';
import type { BodyMemory, Share } from './body-memory.js';

/** The endpoint that a text is to be sent to. */
export interface Borrower {
  origin: string;
  isProven: boolean;
}

export interface BorrowedText {
  text: Buffer;
  /** Once. */
  giveBack: () => void;
}

/** @returns undefined: the notification is past its retention, and nothing is to be given back */
type Borrow = (notificationId: string, size: number, stopping: AbortSignal) => Promise<Buffer | undefined>;

interface Lender {
  borrow: Borrow;
  /** Once for each that was borrowed. */
  giveBack: (notificationId: string) => void;
}

/** A text that is too long for the queue's message, in use. */
interface Loan {
  text: Promise<Buffer | undefined>;
  users: number;
  end: () => void;
}

/**
 * Borrows a text from another lender once for all that use it at the same time, when its share of the memory has room
 * for it.
 */
class SharedLender implements Lender {
  /** By notification. */
  private readonly loans = new Map<string, Loan>();

  constructor(
    private readonly share: Share,
    private readonly from: Lender,
  ) {}

  async borrow(notificationId: string, size: number, stopping: AbortSignal): Promise<Buffer | undefined> {
    let loan = this.loans.get(notificationId);
    if (!loan) this.loans.set(notificationId, (loan = this.begin(notificationId, size, stopping)));
    loan.users++;
    let text: Buffer | undefined;
    try {
      text = await loan.text;
    } finally {
      if (!text) this.giveBack(notificationId);
    }
    return text;
  }

  giveBack(notificationId: string): void {
    const loan = this.loans.get(notificationId);
    if (!loan || --loan.users > 0) return;
    this.loans.delete(notificationId);
    loan.end();
  }

  private begin(notificationId: string, size: number, stopping: AbortSignal): Loan {
    let isBorrowed = false;
    const borrow = async () => {
      await this.share.acquire(size);
      stopping.throwIfAborted(); // the end of the loan releases the memory
      const text = await this.from.borrow(notificationId, size, stopping);
      isBorrowed = text !== undefined;
      return text;
    };
    const end = () => {
      if (isBorrowed) this.from.giveBack(notificationId);
      this.share.release(size);
    };
    return { text: borrow(), users: 0, end };
  }
}

/**
 * The bytes to send of a chunk's notifications that were too many to come with it, each once for all deliveries that
 * are sent at the same time. They are read when they are needed, and kept only while they are in use, within what all
 * chunks of the worker together may have in memory, the calls to one origin, and those to endpoints that are not
 * proven.
 */
export class LargeBodies {
  private readonly toProven: Lender;
  private readonly toUnproven: Lender;
  /**
   * By origin and whether its endpoints are proven: an origin that keeps a text longer than the others do is the only
   * one that it still counts for.
   */
  private readonly toOrigins = new Map<string, Lender>();

  /** @param sizes in bytes, of the large texts, by notification; one that is past its retention is missing */
  constructor(
    private readonly sizes: ReadonlyMap<string, number>,
    private readonly memory: BodyMemory,
    read: (notificationId: string) => Promise<Buffer | undefined>,
  ) {
    this.toProven = new SharedLender(memory.all, { borrow: read, giveBack: () => {} });
    this.toUnproven = new SharedLender(memory.unproven, this.toProven);
  }

  /**
   * For one delivery; undefined: the notification is past its retention.
   * @throws {Stopping} when the worker stops before there is memory for them
   */
  async borrow(
    { notificationId }: Pick<HandedOut, 'notificationId'>,
    borrower: Borrower,
    stopping: AbortSignal,
  ): Promise<BorrowedText | undefined> {
    const size = this.sizes.get(notificationId);
    if (size === undefined) return undefined;
    const lender = this.lenderTo(borrower);
    const text = await lender.borrow(notificationId, size, stopping);
    return text && { text, giveBack: () => lender.giveBack(notificationId) };
  }

  /** First what its origin may have: while a text waits for that, it keeps nothing that another origin could have. */
  private lenderTo({ origin, isProven }: Borrower): Lender {
    const key = `${isProven} ${origin}`;
    let lender = this.toOrigins.get(key);
    if (!lender) {
      lender = new SharedLender(this.memory.of(origin, isProven), isProven ? this.toProven : this.toUnproven);
      this.toOrigins.set(key, lender);
    }
    return lender;
  }
}
