import { Logger } from '@nestjs/common';
import type { OpenEndpoints } from './open-endpoints.service.js';
import type { Rooms } from './rooms.js';

/** Why an endpoint is to be open. */
interface OpenReason {
  reason: string;
  failures: number;
  /** For which its receiver asked to be left alone; undefined: it did not. */
  askedMs: number | undefined;
}

/** Opens and closes endpoints in the ledger, as this process finds them: one change at a time for each. */
export class EndpointChanges {
  private readonly logger = new Logger(EndpointChanges.name);
  /** Those that are being opened or closed. */
  private readonly changing = new Set<string>();
  /** Of these, the ones whose receivers asked to be left alone meanwhile: for the longest of those times. */
  private readonly askedMeanwhile = new Map<string, OpenReason & { askedMs: number }>();
  /** Those that this process closes, and starts slowly itself, until it is told that they are open no more. */
  private readonly startedAnew = new Set<string>();

  constructor(
    private readonly openEndpoints: Pick<OpenEndpoints, 'open' | 'close'>,
    private readonly rooms: Pick<Rooms, 'turnAway' | 'startSlowly'>,
  ) {}

  open(address: string, why: OpenReason): void {
    const { reason, failures, askedMs } = why;
    if (this.changing.has(address)) {
      if (askedMs !== undefined) this.openAfterwards(address, { ...why, askedMs });
      return;
    }
    this.change(address, async () => {
      this.startedAnew.delete(address);
      await this.openEndpoints.open(address, reason, failures, askedMs);
      this.rooms.turnAway('endpoint-parked', address);
    });
  }

  close(address: string): void {
    if (this.changing.has(address)) return;
    this.change(address, async () => {
      let isClosed = false;
      this.startedAnew.add(address);
      try {
        // It stays open where it has asked for more time meanwhile, or another worker was faster.
        isClosed = await this.openEndpoints.close(address);
      } finally {
        // A look that ended before this answer came left the start to it.
        const wasSeen = !this.startedAnew.has(address);
        if (!isClosed) this.startedAnew.delete(address);
        if (isClosed || wasSeen) this.rooms.startSlowly(address);
      }
    });
  }

  /** It is open no more, whoever has closed it: the failures of before have left its windows at one call. */
  haveSeenClosed(address: string): void {
    if (!this.startedAnew.delete(address)) this.rooms.startSlowly(address);
  }

  /** Left out, it would be lost: the next call is the probe, which the receiver asked not to be sent so soon. */
  private openAfterwards(address: string, why: OpenReason & { askedMs: number }): void {
    const before = this.askedMeanwhile.get(address);
    if (!before || before.askedMs < why.askedMs) this.askedMeanwhile.set(address, why);
  }

  /** A change that cannot be written now is written after the next call that says the same. */
  private change(address: string, write: () => Promise<void>): void {
    this.changing.add(address);
    write()
      .catch((error: unknown) => this.logger.warn({ event: 'endpoint.change-failed', address, error }))
      .finally(() => {
        this.changing.delete(address);
        const why = this.askedMeanwhile.get(address);
        this.askedMeanwhile.delete(address);
        if (why) this.open(address, why);
      });
  }
}
