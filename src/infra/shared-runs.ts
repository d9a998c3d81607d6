/**
 * Runs something never twice at once. Calls that come while it runs share one further run, which begins after they
 * came: what they want to see may be younger than what the present run has read.
 */
export class SharedRuns {
  private running: Promise<void> | undefined;
  private next: Promise<void> | undefined;

  constructor(private readonly run: () => Promise<void>) {}

  /** Resolves after a run that began after this call. */
  request(): Promise<void> {
    if (!this.running) {
      this.running = this.run().finally(() => (this.running = undefined));
      return this.running;
    }
    this.next ??= this.running
      .catch(() => {})
      .then(() => {
        this.next = undefined;
        return this.request();
      });
    return this.next;
  }
}
