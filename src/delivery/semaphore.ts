/** A number of permits that callers acquire and release; a caller that finds none waits in line. */
export class Semaphore {
  private free: number;
  private readonly line: (() => void)[] = [];
  private readonly idle: (() => void)[] = [];

  constructor(private readonly permits: number) {
    this.free = permits;
  }

  /** Undefined instead of a promise when there is a permit: no detour through the microtask queue. */
  acquire(): Promise<void> | undefined {
    if (this.free > 0) {
      this.free--;
      return undefined;
    }
    return new Promise((resolve) => this.line.push(resolve));
  }

  release(): void {
    const next = this.line.shift();
    if (next) return next();
    this.free++;
    if (this.free === this.permits) for (const resolve of this.idle.splice(0)) resolve();
  }

  /** Resolves when every permit has been released and no caller waits in line. */
  async drained(): Promise<void> {
    if (this.free < this.permits) await new Promise<void>((resolve) => this.idle.push(resolve));
  }
}
