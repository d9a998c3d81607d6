import { Semaphore } from './semaphore.js';

/** In bytes, for the calls that are under way at the same time. */
export interface BodyShares {
  /** To one origin, of endpoints that are proven. */
  origin: number;
  /** To all endpoints together that are not proven (src/endpoints/places.ts). */
  unproven: number;
  /** To those of one origin. */
  unprovenOrigin: number;
}

/** Bytes to wait for, and to give back. */
export type Share = Pick<Semaphore, 'acquire' | 'release'>;

/**
 * The memory of a worker that its large texts may have: all together, those of the calls to one origin, and those of
 * the calls to endpoints that are not proven. An endpoint that hangs keeps the texts of its calls for as long as these
 * may take, and without a bound of their own such endpoints would keep those of all others waiting. A text that is
 * larger than a share has it alone.
 */
export class BodyMemory {
  /** For a text, however many calls send it. */
  readonly all: Share;
  /** For a text, however many calls to endpoints that are not proven send it. */
  readonly unproven: Share;
  private readonly ofOrigins: SharePerOrigin;
  private readonly ofUnprovenOrigins: SharePerOrigin;

  constructor(bytes: number, shares: BodyShares) {
    this.all = new Semaphore(bytes);
    this.unproven = new Semaphore(shares.unproven);
    this.ofOrigins = new SharePerOrigin(shares.origin);
    this.ofUnprovenOrigins = new SharePerOrigin(shares.unprovenOrigin);
  }

  /**
   * For a text that is sent to that origin. One that goes to several counts for each: which of them keeps it longest is
   * not known before.
   */
  of(origin: string, isProven: boolean): Share {
    return (isProven ? this.ofOrigins : this.ofUnprovenOrigins).of(origin);
  }
}

class SharePerOrigin {
  private readonly semaphores = new Map<string, Semaphore>();

  constructor(private readonly permits: number) {}

  of(origin: string): Share {
    return {
      acquire: (permits) => this.semaphoreOf(origin).acquire(permits),
      release: (permits) => {
        const semaphore = this.semaphoreOf(origin);
        semaphore.release(permits);
        if (semaphore.isIdle) this.semaphores.delete(origin);
      },
    };
  }

  private semaphoreOf(origin: string): Semaphore {
    let semaphore = this.semaphores.get(origin);
    if (!semaphore) this.semaphores.set(origin, (semaphore = new Semaphore(this.permits)));
    return semaphore;
  }
}
