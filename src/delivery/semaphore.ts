interface InLine {
  permits: number;
  go: () => void;
}

/** A number of permits that callers acquire and release; a caller that does not find enough waits in line. */
export class Semaphore {
  private free: number;
  private readonly line: InLine[] = [];

  constructor(private readonly permits: number) {
    this.free = permits;
  }

  /**
   * Undefined instead of a promise when there are enough: no detour through the microtask queue.
   * @param permits a caller that wants more than there are gets them once no other holds one
   */
  acquire(permits = 1): Promise<void> | undefined {
    if (this.line.length === 0 && this.hasFree(permits)) {
      this.free -= permits;
      return undefined;
    }
    return new Promise((go) => this.line.push({ permits, go }));
  }

  /** @param permits as many as were acquired */
  release(permits = 1): void {
    this.free += permits;
    for (let next = this.line[0]; next && this.hasFree(next.permits); next = this.line[0]) {
      this.line.shift();
      this.free -= next.permits;
      next.go();
    }
  }

  /** Every permit is free, and no caller waits in line. */
  get isIdle(): boolean {
    return this.free === this.permits;
  }

  private hasFree(permits: number): boolean {
    return this.free >= permits || this.isIdle;
  }
}
