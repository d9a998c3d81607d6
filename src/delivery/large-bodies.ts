import type { HandedOut } from '../ledger/delivery.js';
import type { Semaphore } from './semaphore.js';

/** A text that is too long for the queue's message. */
interface Large {
  bytes: Promise<Buffer | undefined>;
  size: number;
  /** Deliveries of the chunk that are being sent with it. */
  users: number;
}

/**
 * The bytes to send of a chunk's notifications that were too many to come with it, each once for all deliveries that
 * are sent at the same time. They are read when they are needed, and kept only while they are in use, within what all
 * chunks of the worker together may have in memory.
 */
export class LargeBodies {
  private readonly large = new Map<string, Large>();

  /**
   * @param sizes in bytes, of the large texts, by notification; one that is past its retention is missing
   * @param memory a permit is a byte
   */
  constructor(
    private readonly sizes: ReadonlyMap<string, number>,
    private readonly memory: Semaphore,
    private readonly read: (notificationId: string) => Promise<Buffer | undefined>,
  ) {}

  /**
   * For one delivery, which gives them back; undefined: the notification is past its retention.
   * @throws {Stopping} when the worker stops before there is memory for them
   */
  async borrow({ notificationId }: HandedOut, stopping: AbortSignal): Promise<Buffer | undefined> {
    const size = this.sizes.get(notificationId);
    if (size === undefined) return undefined;
    let large = this.large.get(notificationId);
    if (!large)
      this.large.set(notificationId, (large = { size, users: 0, bytes: this.load(notificationId, size, stopping) }));
    large.users++;
    let bytes: Buffer | undefined;
    try {
      bytes = await large.bytes;
    } finally {
      if (!bytes) this.giveBack({ notificationId });
    }
    return bytes;
  }

  /** Once for each that was borrowed. */
  giveBack({ notificationId }: Pick<HandedOut, 'notificationId'>): void {
    const large = this.large.get(notificationId);
    if (!large || --large.users > 0) return; // others are sending it
    this.large.delete(notificationId);
    this.memory.release(large.size);
  }

  private async load(notificationId: string, size: number, stopping: AbortSignal): Promise<Buffer | undefined> {
    await this.memory.acquire(size);
    stopping.throwIfAborted(); // the memory is released by those that wait for the text
    return this.read(notificationId);
  }
}
