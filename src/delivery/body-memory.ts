import { Semaphore } from './semaphore.js';

/** In bytes, for the calls that are under way at the same time. */
export interface BodyShares {
  /** To one origin. */
  origin: number;
  /** To all endpoints together that are not proven (src/endpoints/places.ts). */
  unproven: number;
  /** To those of one origin. */
  unprovenOrigin: number;
}

/**
 * What the large texts of a worker may have of its memory: all together, those of the calls to one origin, and those of the calls to
 * endpoints that are not proven. An endpoint that hangs keeps the texts of its calls for as long as these may take, and without a bound of
 * their own such endpoints would keep those of all others waiting.
 */
export class BodyMemory {
  private readonly free: Semaphore;
  private readonly unproven: Semaphore;
  private readonly ofOrigins: SemaphorePerOrigin;
  private readonly ofUnprovenOrigins: SemaphorePerOrigin;

  constructor(bytes: number, shares: BodyShares) {
    this.free = new Semaphore(bytes);
    this.unproven = new Semaphore(shares.unproven);
    this.ofOrigins = new SemaphorePerOrigin(shares.origin);
    this.ofUnprovenOrigins = new SemaphorePerOrigin(shares.unprovenOrigin);
  }

  /** For a text, however many calls send it. One that is larger than all of it has it alone. */
  acquire(bytes: number): Promise<void> | undefined {
    return this.free.acquire(bytes);
  }

  release(bytes: number): void {
    this.free.release(bytes);
  }

  /** For a text that is sent to that origin. One that goes to several counts for each: which of them keeps it longest is not known before. */
  async acquireFor(origin: string, isProven: boolean, bytes: number): Promise<void> {
    if (isProven) return this.ofOrigins.of(origin).acquire(bytes);
    // First its own: while it waits for that, it keeps nothing that another one could have.
    await this.ofUnprovenOrigins.of(origin).acquire(bytes);
    await this.unproven.acquire(bytes);
  }

  /** @param isProven as it was acquired */
  releaseFor(origin: string, isProven: boolean, bytes: number): void {
    if (isProven) return this.ofOrigins.release(origin, bytes);
    this.unproven.release(bytes);
    this.ofUnprovenOrigins.release(origin, bytes);
  }
}

class SemaphorePerOrigin {
  private readonly semaphores = new Map<string, Semaphore>();

  constructor(private readonly permits: number) {}

  of(origin: string): Semaphore {
    let semaphore = this.semaphores.get(origin);
    if (!semaphore) this.semaphores.set(origin, (semaphore = new Semaphore(this.permits)));
    return semaphore;
  }

  release(origin: string, permits: number): void {
    const semaphore = this.semaphores.get(origin)!;
    semaphore.release(permits);
    if (semaphore.isIdle) this.semaphores.delete(origin);
  }
}
