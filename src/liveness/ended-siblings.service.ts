import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Siblings } from '../supervision/siblings.js';
import { Heartbeat } from './heartbeat.service.js';

/**
 * Notes in the ledger that a sibling has ended, as soon as the supervisor says so: what it had in hand need not wait until its heartbeat has
 * expired.
 */
@Injectable()
export class EndedSiblings implements OnApplicationBootstrap {
  private readonly logger = new Logger(EndedSiblings.name);

  constructor(
    private readonly siblings: Siblings,
    private readonly heartbeat: Heartbeat,
  ) {}

  onApplicationBootstrap(): void {
    this.siblings.announce(this.heartbeat.processId, (processId) => {
      this.heartbeat.noteEnd(processId).catch((error: unknown) => {
        this.logger.warn({ event: 'heartbeat.end-not-noted', processId, error }); // it expires, only later
      });
    });
  }
}
