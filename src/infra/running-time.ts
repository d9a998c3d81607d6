/**
 * It is asked for the time twenty times a second at least; a longer step than this means that the process stood still.
 */
const longestStepMs = 150;

/**
 * Time that passes while the process runs. While it stands still (a suspended machine, a long garbage collection),
 * answers lie unread in its sockets: counted in full, that time would make healthy endpoints look as if they had
 * answered nothing.
 */
export class RunningTime {
  private readAt: number;
  private lost = 0;

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {
    this.readAt = clock();
  }

  /** Milliseconds, monotonic. */
  now(): number {
    const at = this.clock();
    this.lost += Math.max(0, at - this.readAt - longestStepMs);
    this.readAt = at;
    return at - this.lost;
  }

  /** How long the process stood still, as of the last `now`. */
  get lostMs(): number {
    return this.lost;
  }
}
