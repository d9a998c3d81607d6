import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { SharedRuns } from '../infra/shared-runs.js';
import { readBacklogs } from '../ledger/held-subscriptions.js';
import {
  claimProbe,
  closeEndpoint,
  endProbe,
  openEndpoint,
  readOpenEndpoints,
  type ClosedEndpoint,
  type OpenEndpoint,
} from '../ledger/open-endpoints.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { openGauge } from './endpoints.metrics.js';
import { originOf } from './origin.js';

const pollIntervalMs = 1000;
/**
 * Between two probes, a twentieth of the time that the endpoint has been open: its recovery is noticed after a twentieth of its
 * outage, and an endpoint that is down for hours is called once a minute. One that hangs keeps its probe until the call times out, and is
 * not probed meanwhile: each would go through queue and worker only to be held again. The lease is longer than a call takes by
 * default; a probe is lost when its worker is killed.
 */
const probePauses = { shortestMs: 1000, longestMs: 60_000, fraction: 20, leaseMs: 15_000 };

/**
 * The endpoints whose circuit breaker is open, and the subscriptions with a backlog, as the ledger has them: read each
 * second by every process. What a process does not know yet costs a delivery a way through the queue, and nothing else.
 */
@Injectable()
export class OpenEndpoints implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(OpenEndpoints.name);
  private byAddress: ReadonlyMap<string, OpenEndpoint> = new Map();
  private backlogs: ReadonlySet<string> = new Set();
  private readonly reads = new SharedRuns(() => this.read());
  private poll: NodeJS.Timeout | undefined;

  constructor(
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.refresh();
    this.poll = setInterval(() => {
      this.refresh().catch((error: unknown) => this.logger.warn({ event: 'endpoints.refresh-failed', error }));
    }, pollIntervalMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.poll);
  }

  /** Resolves when all that was committed before the call is known. Calls that arrive together share one read. */
  refresh(): Promise<void> {
    return this.reads.request();
  }

  /** The open endpoint that this callback URL leads to: its origin, or the URL alone. */
  of(callbackUrl: string): OpenEndpoint | undefined {
    if (this.byAddress.size === 0) return undefined; // nearly always, and on the hot path
    return this.byAddress.get(originOf(callbackUrl)) ?? this.byAddress.get(callbackUrl);
  }

  get isAnyOpen(): boolean {
    return this.byAddress.size > 0;
  }

  /** No endpoint is open, and no subscription has a backlog. */
  get isQuiet(): boolean {
    return this.byAddress.size === 0 && this.backlogs.size === 0;
  }

  list(): OpenEndpoint[] {
    return [...this.byAddress.values()];
  }

  /**
   * Whether deliveries of it are held because more arrived than its endpoint could take: later ones queue up behind
   * those.
   */
  hasBacklog(subscriptionId: string): boolean {
    return this.backlogs.has(subscriptionId);
  }

  /** @param probeInMs until the first probe; of an endpoint that is open already, until the next one at the earliest */
  async open(address: string, reason: string, failures: number, probeInMs = probePauses.shortestMs): Promise<void> {
    const isNew = await openEndpoint(this.postgres, { address, reason, failures }, probeInMs);
    await this.refresh();
    if (isNew) this.events.report({ event: 'endpoint.opened', address, reason, failures });
  }

  /**
   * @param also runs in the same transaction, if it was open
   * @returns whether it was open
   */
  async close(
    address: string,
    by: 'probe' | 'operator' | 'unused',
    also?: (query: Query, closed: ClosedEndpoint) => Promise<void>,
  ): Promise<boolean> {
    // An endpoint that has asked for more time since the probe began stays open.
    const probeWithinMs = by === 'probe' ? probePauses.longestMs : Infinity;
    const closed = await closeEndpoint(this.postgres, address, probeWithinMs, also);
    await this.refresh();
    if (!closed) return false;
    this.events.report({ event: 'endpoint.closed', address, openMs: Math.round(closed.openMs), by });
    return true;
  }

  /**
   * The right to send one delivery as a probe; given to one process, when a probe is due.
   * @param heldFor the subscription of which a held one is to be released; null: a delivery that is due is the probe
   */
  claimProbe({ address }: OpenEndpoint, heldFor: string | null = null): Promise<boolean> {
    return claimProbe(this.postgres, address, heldFor, probePauses);
  }

  /** The next probe may be claimed `pauseMs` after this, or when the lease has ended. Never throws. */
  async endProbe(address: string, pauseMs: number): Promise<void> {
    try {
      await endProbe(this.postgres, address, pauseMs);
    } catch (error) {
      this.logger.warn({ event: 'endpoint.change-failed', address, error });
    }
  }

  private async read(): Promise<void> {
    const [open, backlogs] = await Promise.all([readOpenEndpoints(this.postgres), readBacklogs(this.postgres)]);
    this.byAddress = new Map(open.map((endpoint) => [endpoint.address, endpoint]));
    this.backlogs = backlogs;
    openGauge.set(open.length);
  }
}
