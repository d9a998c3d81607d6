/** The limits of a batcher. Times are in milliseconds. */
export interface BatcherOptions<Item> {
  /** Items in one batch. */
  maxItems: number;
  /** Bytes in one batch, by `bytesOf`; an item that is larger by itself is a batch of its own. */
  maxBytes?: number;
  /** Wait for more items, unless the batch before had only one: then more are unlikely, and it does not wait. */
  lingerMs: number;
  /**
   * Waits also where the batch before had only one: for what is not urgent, and comes from many sides at the same time.
   */
  lingersAlone?: boolean;
  /** Batches written at the same time. */
  concurrency?: number;
  /**
   * True for an error that one item may have caused: the batch is then repeated item by item, so that only that item
   * fails.
   */
  isolate?: (error: unknown) => boolean;
  /**
   * As much as may wait for its turn. An item beyond that is refused at once; one that finds nothing waiting is not.
   */
  maxWaiting: { items: number; bytes?: number };
  /** The size of an item; without it, batches and what waits are counted in items alone. */
  bytesOf?: (item: Item) => number;
  /** An item that has waited this long for its turn is refused. */
  turnWithinMs: number;
  /**
   * A batch whose write takes longer is given up: its callers are told, and its result no longer counts. Without it the
   * write has a limit of its own.
   */
  answerWithinMs?: number;
}

/**
 * `full` and `late`: it was not written and never will be. `unanswered`: it was given to `write`, which has not ended.
 */
export type RefusalReason = 'full' | 'late' | 'unanswered';

/** An item that a batcher would not keep waiting any longer. */
export class BatcherRefusal extends Error {
  constructor(readonly reason: RefusalReason) {
    super(
      {
        full: 'Too much is waiting to be written.',
        late: 'It waited too long for its turn to be written.',
        unanswered: 'Writing it took too long.',
      }[reason],
    );
  }
}

interface Waiting<Item, Result> {
  item: Item;
  bytes: number;
  /** When it came, as `performance.now()` tells it. */
  since: number;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Turns calls that arrive together into one write: group commit for the ledger, one script call for Redis. `write`
 * returns one result per item, in order; it is told when their batch began, as `performance.now()` tells it. A write
 * that fails is not repeated: its callers get the error.
 *
 * Waiting items are bounded in number, bytes and time: those that come faster than they are written are refused, not
 * collected.
 */
export class Batcher<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private waitingBytes = 0;
  private writing = 0;
  private scheduled = false;
  private lastSize = 0;
  private idle: (() => void)[] = [];
  private watch: NodeJS.Timeout | undefined;

  constructor(
    private readonly write: (items: Item[], begunAt: number) => Promise<Result[]>,
    private readonly options: BatcherOptions<Item>,
  ) {}

  /** @throws {BatcherRefusal} */
  add(item: Item): Promise<Result> {
    const bytes = this.options.bytesOf?.(item) ?? 0;
    if (!this.hasRoomFor(bytes)) return Promise.reject(new BatcherRefusal('full'));
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, bytes, since: performance.now(), resolve, reject });
      this.waitingBytes += bytes;
      this.schedule();
    });
  }

  /** Nothing waits and nothing is being written. */
  get isIdle(): boolean {
    return this.waiting.length === 0 && this.writing === 0;
  }

  /** Resolves when it is idle. */
  async drain(): Promise<void> {
    if (this.isIdle) return;
    await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private hasRoomFor(bytes: number): boolean {
    const { items, bytes: most = Infinity } = this.options.maxWaiting;
    const { length } = this.waiting;
    return length === 0 || (length < items && this.waitingBytes + bytes <= most);
  }

  private get isBusy(): boolean {
    return this.writing >= (this.options.concurrency ?? 1);
  }

  private schedule(): void {
    if (this.isBusy) return this.watchTurns(); // the write that finishes flushes again
    const { maxItems, maxBytes = Infinity, lingerMs, lingersAlone = false } = this.options;
    if (this.waiting.length >= maxItems || this.waitingBytes >= maxBytes) this.flush();
    else if (!this.scheduled) {
      this.scheduled = true;
      const go = () => {
        this.scheduled = false;
        if (this.waiting.length > 0 && !this.isBusy) this.flush();
      };
      if ((this.lastSize <= 1 && !lingersAlone) || lingerMs === 0) setImmediate(go);
      else setTimeout(go, lingerMs);
    }
  }

  /** One timer for all that wait: they come and go in order, so the first has waited longest. */
  private watchTurns(): void {
    const first = this.waiting[0];
    if (this.watch || !first) return;
    const leftMs = first.since + this.options.turnWithinMs - performance.now();
    this.watch = setTimeout(() => {
      this.watch = undefined;
      this.refuseLate(performance.now());
      this.watchTurns();
    }, leftMs).unref();
  }

  private refuseLate(now: number): void {
    const latest = now - this.options.turnWithinMs;
    if (this.waiting[0] === undefined || this.waiting[0].since > latest) return; // nearly always
    const inTime = this.waiting.findIndex(({ since }) => since > latest);
    const late = this.waiting.splice(0, inTime === -1 ? this.waiting.length : inTime);
    for (const { bytes, reject } of late) {
      this.waitingBytes -= bytes;
      reject(new BatcherRefusal('late'));
    }
    this.tellIdle();
  }

  private flush(): void {
    // Nothing watches what lingers: the whole process may have stood still meanwhile.
    const now = performance.now();
    this.refuseLate(now);
    if (this.waiting.length === 0) return;
    const batch = this.takeBatch();
    this.lastSize = batch.length;
    this.writing++;
    void this.begin(batch, now).finally(() => {
      this.writing--;
      if (this.waiting.length > 0) this.schedule();
      else this.tellIdle();
    });
    if (this.waiting.length > 0) this.schedule();
  }

  private takeBatch(): Waiting<Item, Result>[] {
    const { maxItems, maxBytes = Infinity } = this.options;
    if (this.waiting.length <= maxItems && this.waitingBytes <= maxBytes) {
      const all = this.waiting;
      this.waiting = [];
      this.waitingBytes = 0;
      return all;
    }
    let bytes = this.waiting[0]!.bytes;
    let count = 1;
    for (; count < Math.min(maxItems, this.waiting.length); count++) {
      const more = bytes + this.waiting[count]!.bytes;
      if (more > maxBytes) break;
      bytes = more;
    }
    this.waitingBytes -= bytes;
    return this.waiting.splice(0, count);
  }

  private async begin(batch: Waiting<Item, Result>[], begunAt: number): Promise<void> {
    const { answerWithinMs } = this.options;
    const giveUp =
      answerWithinMs === undefined
        ? undefined
        : setTimeout(() => rejectAll(batch, new BatcherRefusal('unanswered')), answerWithinMs);
    await this.settle(batch, begunAt);
    clearTimeout(giveUp);
  }

  private async settle(batch: Waiting<Item, Result>[], begunAt: number): Promise<void> {
    try {
      const results = await this.write(
        batch.map((waiting) => waiting.item),
        begunAt,
      );
      batch.forEach((waiting, index) => waiting.resolve(results[index] as Result));
    } catch (error) {
      if (batch.length > 1 && this.options.isolate?.(error)) {
        for (const waiting of batch) await this.settle([waiting], begunAt);
      } else rejectAll(batch, error);
    }
  }

  private tellIdle(): void {
    if (this.isIdle) for (const resolve of this.idle.splice(0)) resolve();
  }
}

/** For those that have an answer already, it does nothing. */
function rejectAll<Item, Result>(batch: Waiting<Item, Result>[], error: unknown): void {
  for (const { reject } of batch) reject(error);
}
