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
 * The bytes to send of a chunk's notifications that were too many to come with it, each once for all deliveries that are sent
 * at the same time. They are read when they are needed, and kept only while they are in use, within what all chunks of the
 * worker together may have in memory.
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

  /** For one delivery, which gives them back; undefined: the notification is past its retention. */
  async take({ notificationId }: HandedOut): Promise<Buffer | undefined> {
    const size = this.sizes.get(notificationId);
    if (size === undefined) return undefined;
    let large = this.large.get(notificationId);
    if (!large) this.large.set(notificationId, (large = { size, users: 0, bytes: this.load(notificationId, size) }));
    large.users++;
    let bytes: Buffer | undefined;
    try {
      bytes = await large.bytes;
    } finally {
      if (!bytes) this.giveBack({ notificationId });
    }
    return bytes;
  }

  /** Once for each that was taken. */
  giveBack({ notificationId }: Pick<HandedOut, 'notificationId'>): void {
    const large = this.large.get(notificationId);
    if (!large || --large.users > 0) return; // others are sending it
    this.large.delete(notificationId);
    this.memory.release(large.size);
  }

  private async load(notificationId: string, size: number): Promise<Buffer | undefined> {
    await this.memory.acquire(size);
    return this.read(notificationId);
  }
}
