/** A number of places that calls take and give back; who finds none waits in line. */
export class Capacity {
  private free: number;
  private readonly line: (() => void)[] = [];

  constructor(places: number) {
    this.free = places;
  }

  /** Resolves with a place taken. Undefined instead of a promise when there is room: no detour through the microtask queue. */
  take(): Promise<void> | undefined {
    if (this.free > 0) {
      this.free--;
      return undefined;
    }
    return new Promise((resolve) => this.line.push(resolve));
  }

  giveBack(): void {
    const next = this.line.shift();
    if (next) next();
    else this.free++;
  }
}
