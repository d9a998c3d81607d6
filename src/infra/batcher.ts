export interface BatcherOptions {
  maxItems: number;
  /** Milliseconds to wait for more items, unless the batch before had only one: then more are unlikely, and it does not wait. */
  lingerMs: number;
  /** Batches written at the same time. */
  concurrency?: number;
  /** True for an error that one item may have caused: the batch is then repeated item by item, so that only that item fails. */
  isolate?: (error: unknown) => boolean;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Turns calls that arrive together into one write: group commit for the ledger, one script call for Redis. `write` returns
 * one result per item, in order. A write that fails is not repeated: its callers get the error.
 */
export class Batcher<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private writing = 0;
  private scheduled = false;
  private lastSize = 0;
  private idle: (() => void)[] = [];

  constructor(
    private readonly write: (items: Item[]) => Promise<Result[]>,
    private readonly options: BatcherOptions,
  ) {}

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      this.schedule();
    });
  }

  /** Resolves when nothing waits and nothing is being written. */
  async drain(): Promise<void> {
    if (this.waiting.length === 0 && this.writing === 0) return;
    await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private schedule(): void {
    if (this.writing >= (this.options.concurrency ?? 1)) return; // the write that finishes flushes again
    if (this.waiting.length >= this.options.maxItems) this.flush();
    else if (!this.scheduled) {
      this.scheduled = true;
      const go = () => {
        this.scheduled = false;
        if (this.waiting.length > 0 && this.writing < (this.options.concurrency ?? 1)) this.flush();
      };
      if (this.lastSize <= 1 || this.options.lingerMs === 0) setImmediate(go);
      else setTimeout(go, this.options.lingerMs);
    }
  }

  private flush(): void {
    const batch =
      this.waiting.length <= this.options.maxItems ? this.waiting : this.waiting.slice(0, this.options.maxItems);
    this.waiting = batch === this.waiting ? [] : this.waiting.slice(this.options.maxItems);
    this.lastSize = batch.length;
    this.writing++;
    void this.settle(batch).finally(() => {
      this.writing--;
      if (this.waiting.length > 0) this.schedule();
      else if (this.writing === 0) for (const resolve of this.idle.splice(0)) resolve();
    });
    if (this.waiting.length > 0) this.schedule();
  }

  private async settle(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.write(batch.map((waiting) => waiting.item));
      batch.forEach((waiting, index) => waiting.resolve(results[index] as Result));
    } catch (error) {
      if (batch.length > 1 && this.options.isolate?.(error)) {
        for (const waiting of batch) await this.settle([waiting]);
      } else {
        for (const waiting of batch) waiting.reject(error);
      }
    }
  }
}
