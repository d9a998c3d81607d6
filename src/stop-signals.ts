import { constants } from 'node:os';

type Stop = (reason: string) => void;

/**
 * SIGTERM and SIGINT from the first moment on: the first process of a container gets neither while nobody listens, and
 * would be killed in the end. Their effect changes while the process starts.
 */
export class StopSignals {
  private came: string | undefined;
  private stop: Stop | undefined;

  /** @param stop the action of a signal until `mean` says otherwise */
  constructor(stop: Stop) {
    this.stop = stop;
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => this.handle(signal));
  }

  /** From now on a signal does this; undefined: it waits for what will be said next. */
  mean(stop: Stop | undefined): void {
    this.stop = stop;
    if (this.came !== undefined) stop?.(this.came);
  }

  private handle(signal: string): void {
    if (this.stop) this.stop(signal);
    else this.came = signal;
  }
}

/** With the status that a shell reports for a program that this signal ended: 143 for SIGTERM, 130 for SIGINT. */
export function endBySignal(signal: string): never {
  process.exit(128 + constants.signals[signal as NodeJS.Signals]);
}
