/**
 * Something that costs as much however many ask for it: it is computed at most once in a while, and those who ask share
 * it.
 */
export class ComputedSeldom<T> {
  private last: { at: number; value: T } | undefined;
  private running: Promise<T> | undefined;

  /** @param forMs that a value is given out, from when it was computed */
  constructor(
    private readonly compute: () => Promise<T>,
    private readonly forMs: number,
    private readonly now = () => performance.now(),
  ) {}

  /** @throws the error of computing it, to all who wait; the next one tries again */
  get(): Promise<T> {
    if (this.last && this.now() - this.last.at < this.forMs) return Promise.resolve(this.last.value);
    this.running ??= this.computeOnce().finally(() => (this.running = undefined));
    return this.running;
  }

  private async computeOnce(): Promise<T> {
    const value = await this.compute();
    this.last = { at: this.now(), value };
    return value;
  }
}
