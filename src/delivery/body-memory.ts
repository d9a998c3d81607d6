import { Semaphore } from './semaphore.js';

/**
 * What the large texts of a worker may have of its memory, in bytes: all together, and those of the calls to one origin. An origin that
 * hangs keeps the texts of its calls for as long as these may take, and without a bound of its own would keep those of all others waiting.
 */
export class BodyMemory {
  private readonly free: Semaphore;
  private readonly ofOrigins = new Map<string, Semaphore>();

  constructor(
    bytes: number,
    private readonly bytesOfOrigin: number,
  ) {
    this.free = new Semaphore(bytes);
  }

  /** For a text, however many calls send it. One that is larger than all of it has it alone. */
  acquire(bytes: number): Promise<void> | undefined {
    return this.free.acquire(bytes);
  }

  release(bytes: number): void {
    this.free.release(bytes);
  }

  /** For a text that is sent to that origin. One that goes to several counts for each: which of them keeps it longest is not known before. */
  acquireFor(origin: string, bytes: number): Promise<void> | undefined {
    let share = this.ofOrigins.get(origin);
    if (!share) this.ofOrigins.set(origin, (share = new Semaphore(this.bytesOfOrigin)));
    return share.acquire(bytes);
  }

  releaseFor(origin: string, bytes: number): void {
    const share = this.ofOrigins.get(origin)!;
    share.release(bytes);
    if (share.isIdle) this.ofOrigins.delete(origin);
  }
}
