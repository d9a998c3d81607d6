import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Siblings } from '../supervision/siblings.js';
import { Heartbeat } from './heartbeat.service.js';

/**
 * Notes in the ledger that a sibling has ended, as soon as the supervisor says so: what it had in hand need not wait
 * until its heartbeat has expired.
 */
@Injectable()
export class EndedSiblings implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(EndedSiblings.name);
  private isLeaving = false;

  constructor(
    private readonly siblings: Siblings,
    private readonly heartbeat: Heartbeat,
  ) {}

  onApplicationBootstrap(): void {
    this.siblings.announce(this.heartbeat.processId, (processId) => {
      if (this.isLeaving) return;
      this.heartbeat.noteEnd(processId).catch((error: unknown) => {
        this.logger.warn({ event: 'heartbeat.end-not-noted', processId, error }); // it expires, only later
      });
    });
  }

  /** The database is about to be left. Siblings end in the same seconds, and each has noted that itself. */
  beforeApplicationShutdown(): void {
    this.isLeaving = true;
  }
}
