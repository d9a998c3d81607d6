/** A delivery in line. */
export interface InLine {
  /** Milliseconds, monotonic. */
  since: number;
  /** By the process that accepted it: while it waits, nothing in the queue waits for it. */
  isHandedOver: boolean;
}

/** Of each kind: how many deliveries the endpoint gets to in the time that one of that kind may wait. */
export interface InTime {
  fromQueue: number;
  handedOver: number;
}

/**
 * Deliveries that wait for room at an endpoint. Those from the queue and those that were handed over take turns, and of
 * each kind the first one is first: retries and what was released come by the queue, and without a turn of their own
 * would be held again and again while more is handed over than the endpoint gets to.
 */
export class Line<W extends InLine> {
  private readonly fromQueue: W[] = [];
  private readonly handedOver: W[] = [];
  private isTurnOfQueue = true;

  get length(): number {
    return this.fromQueue.length + this.handedOver.length;
  }

  /** Deliveries of one kind. */
  lengthOf(isHandedOver: boolean): number {
    return this.of(isHandedOver).length;
  }

  push(waiting: W): void {
    this.of(waiting.isHandedOver).push(waiting);
  }

  /** Takes the one whose turn it is. */
  next(): W | undefined {
    const [first, second] = this.isTurnOfQueue ? [this.fromQueue, this.handedOver] : [this.handedOver, this.fromQueue];
    this.isTurnOfQueue = !this.isTurnOfQueue;
    return first.shift() ?? second.shift(); // not `splice`, which moves all that is behind it
  }

  /** Takes all. */
  takeAll(): W[] {
    return [...this.fromQueue.splice(0), ...this.handedOver.splice(0)];
  }

  /** Takes those that have waited since then, or longer. */
  takeSince(time: number): W[] {
    return [this.fromQueue, this.handedOver].flatMap((kind) => kind.splice(0, countSince(kind, time)));
  }

  /**
   * Likewise, but not those that the endpoint gets to in time. Those that are taken make room for those behind them.
   */
  takeLateSince(time: number, inTime: InTime): W[] {
    const fromQueue = takeLate(this.fromQueue, time, shareOf(inTime.fromQueue, this.handedOver));
    return [...fromQueue, ...takeLate(this.handedOver, time, shareOf(inTime.handedOver, this.fromQueue))];
  }

  private of(isHandedOver: boolean): W[] {
    return isHandedOver ? this.handedOver : this.fromQueue;
  }
}

/** Of `sent` deliveries, how many are of the one kind, where it takes turns with the other. */
const shareOf = (sent: number, others: readonly InLine[]): number => Math.max(sent - others.length, sent / 2);

/** How many have waited since then, or longer: those at the front, since the first one came first. */
function countSince(kind: readonly InLine[], time: number): number {
  const younger = kind.findIndex(({ since }) => since > time);
  return younger === -1 ? kind.length : younger;
}

function takeLate<W extends InLine>(kind: W[], time: number, inTime: number): W[] {
  const late = Math.ceil(inTime);
  return kind.splice(late, Math.max(0, countSince(kind, time) - late));
}
