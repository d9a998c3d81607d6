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
 * The texts of a chunk's notifications as bytes to send, each once for all deliveries that are sent at the same time. Those
 * that came with the chunk are in memory as long as the chunk is. The large ones are read when they are needed, and kept only
 * while they are in use, within what all chunks of the worker together may have in memory.
 */
export class ChunkBodies {
  private readonly inline = new Map<string, Buffer>();
  private readonly large = new Map<string, Large>();

  /**
   * @param sizes in bytes, of the large texts, by notification; one that is past its retention is missing
   * @param memory a permit is a byte
   */
  constructor(
    private readonly sizes: ReadonlyMap<string, number>,
    private readonly memory: Semaphore,
    private readonly read: (notificationId: string) => Promise<string | undefined>,
  ) {}

  /** @returns the bytes where they came with the chunk; undefined: they are to be taken */
  inlineOf({ notificationId, body }: HandedOut): Buffer | undefined {
    if (body === null) return undefined;
    let bytes = this.inline.get(notificationId);
    if (!bytes) this.inline.set(notificationId, (bytes = Buffer.from(body)));
    return bytes;
  }

  /** Large bytes, for one delivery, which gives them back; undefined: the notification is past its retention. */
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
    const body = await this.read(notificationId);
    return body === undefined ? undefined : Buffer.from(body);
  }
}
