/** Of a lane, while deliveries are few: see `add`. */
const fewDeliveries = 512;

interface Unsettled {
  deliveries: number;
  /** Has the chunk acknowledged; a lease covers what is not settled of it. */
  detach: () => void;
}

/** Chunks of a lane that the queue waits to have acknowledged. */
export class Unacknowledged {
  private readonly chunks = new Set<Unsettled>();
  private deliveries = 0;

  /** @param most chunks; fewer than the queue hands over before it waits for one of them */
  constructor(private readonly most: number) {}

  /**
   * With more chunks than that the oldest is detached, if all of them have few deliveries: then endpoints that do not
   * answer keep them, and the next chunk, which may be for others, would wait in the queue. Where they have many, the
   * worker is what they wait for, and to detach them would cost a write for deliveries that are about to be settled.
   * @returns to be called when the chunk is acknowledged
   */
  add(chunk: Unsettled): () => void {
    this.chunks.add(chunk);
    this.deliveries += chunk.deliveries;
    const [oldest] = this.chunks;
    if (oldest && this.areMany && this.deliveries <= fewDeliveries) {
      this.delete(oldest);
      oldest.detach();
    }
    return () => this.delete(chunk);
  }

  /** The queue is about to hand over nothing more, or does not any more. */
  get areMany(): boolean {
    return this.chunks.size > this.most;
  }

  private delete(chunk: Unsettled): void {
    if (this.chunks.delete(chunk)) this.deliveries -= chunk.deliveries;
  }
}
