import { originOf } from './origin.js';

/** Failures longer ago than this do not count: calls as rare as that take nothing from other endpoints. */
const lateMs = 30_000;
/** As soon as there are more addresses than this, those whose failures are long ago are looked for, and forgotten. */
const fewAddresses = 1000;

interface Series {
  /** Calls that failed since the last success. */
  calls: number;
  /**
   * When which delivery failed last, the latest at the end; one for each delivery, and not more than it takes to open.
   */
  failed: { delivery: string; at: number }[];
}

/**
 * Circuit breakers, by the address of the endpoint: each counts the failures since the last success. One opens when as
 * many deliveries as the threshold says have failed one after the other within half a minute. Deliveries, not calls: a
 * delivery that is alone may be repeated as often and as soon as its retry policy says, and takes nothing from others.
 */
export class CircuitBreakers {
  private readonly series = new Map<string, Series>();
  /** Addresses that this process has opened since nothing was answered. */
  private readonly silent = new Set<string>();

  /**
   * @param threshold deliveries that fail in a row
   * @param now milliseconds, monotonic
   */
  constructor(
    private readonly threshold: number,
    private readonly now: () => number,
  ) {}

  /** @returns after how many failed calls the endpoint is to be opened; undefined: it stays as it is */
  failed(address: string, delivery: string): number | undefined {
    const now = this.now();
    let series = this.series.get(address);
    if (!series) {
      if (this.series.size >= fewAddresses) this.forgetOld(now);
      this.series.set(address, (series = { calls: 0, failed: [] }));
    }
    series.calls++;
    series.failed = series.failed.filter((each) => each.delivery !== delivery && now - each.at < lateMs);
    series.failed.push({ delivery, at: now });
    if (series.failed.length < this.threshold) return undefined;
    series.failed.splice(0, series.failed.length - this.threshold);
    return series.calls;
  }

  succeeded(address: string): void {
    if (this.series.size > 0) this.series.delete(address); // on the hot path nearly always none has failed
  }

  /**
   * So many calls to the URL have failed that it would have opened, and its origin was answered, or closed, since the
   * first of them.
   */
  hangsAlone(url: string): boolean {
    const calls = this.series.get(url)?.calls ?? 0;
    return calls >= this.threshold && calls > (this.series.get(originOf(url))?.calls ?? 0);
  }

  /**
   * It was open and is no more: it begins anew, an origin with all its URLs. It is not forgotten which of these were
   * not answered: one that hangs on hangs alone.
   */
  closed(address: string): void {
    this.silent.delete(address);
    this.series.delete(address);
    for (const [each, series] of this.series) if (originOf(each) === address) series.failed = [];
  }

  /** It is being opened since nothing is answered, and not for answers that were errors. */
  opensForSilence(address: string): void {
    this.silent.add(address);
  }

  openedForSilence(address: string): boolean {
    return this.silent.has(address);
  }

  private forgetOld(now: number): void {
    for (const [address, { failed }] of this.series) {
      if (failed.every(({ at }) => now - at >= lateMs)) this.series.delete(address);
    }
  }
}
