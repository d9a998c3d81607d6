import type { Session } from './session.js';

/** On standard error, and only where people look; loaded only then. */
export class ProgressBar {
  private constructor(
    private readonly bar: { update(value: number): void; setTotal(total: number): void; stop(): void } | undefined,
  ) {}

  static async start({ terminal, isJson }: Session, total: number): Promise<ProgressBar> {
    const stream = terminal.notes;
    if (isJson || stream.isTTY !== true) return new ProgressBar(undefined);
    const { default: progress } = await import('cli-progress');
    const bar = new progress.SingleBar(
      {
        stream: stream as NodeJS.WriteStream,
        format: '{bar} {percentage} % | {value} of {total} | {duration_formatted}, {eta_formatted} left',
        hideCursor: true,
        // Ctrl-C is the command's own.
        gracefulExit: false,
        etaBuffer: 100,
        // A count that was cut short may have found none.
        emptyOnZero: true,
      },
      progress.Presets.shades_grey,
    );
    bar.start(total, 0);
    return new ProgressBar(bar);
  }

  update(value: number, total?: number): void {
    if (total !== undefined) this.bar?.setTotal(total);
    this.bar?.update(value);
  }

  stop(): void {
    this.bar?.stop();
  }
}
