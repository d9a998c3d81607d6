import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Batcher } from '../infra/batcher.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { isDataError, isTooLongForIndex } from '../infra/postgres/postgres-errors.js';
import { SharedRuns } from '../infra/shared-runs.js';
import { readBacklogs } from '../ledger/held-subscriptions.js';
import {
  claimProbes,
  closeEndpoints,
  endProbes,
  keepProbes,
  openEndpoints,
  readOpenEndpoints,
  type ClosedEndpoint,
  type EndedProbe,
  type Opening,
  type OpenEndpoint,
  type ProbeClaim,
} from '../ledger/open-endpoints.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { longestOpenGauge, openGauge } from './endpoints.metrics.js';
import { endpointsOf, type Callback } from './origin.js';

const pollIntervalMs = 1000;
/**
 * Between two probes, a twentieth of the time that the endpoint has been open: its recovery is noticed after a
 * twentieth of its outage, and an endpoint that is down for hours is called once a minute. One that hangs keeps its
 * probe until the call times out, and is not probed meanwhile: each would go through queue and worker only to be held
 * again. A call may take minutes, so the worker that makes it keeps its probe every few seconds; the lease is for one
 * whose worker was killed.
 */
const probePauses = { shortestMs: 1000, longestMs: 60_000, fraction: 20, leaseMs: 15_000 };

/**
 * Endpoints that hang at the same time are found out, and time out, at the same time: two hundred endpoints are a few
 * statements. They wait for each other, since each of them is found out by a call or a line of its own.
 */
const together = {
  maxItems: 256,
  lingerMs: 25,
  lingersAlone: true,
  maxWaiting: { items: 10_000 },
  turnWithinMs: 30_000,
  isolate: (error: unknown) => isDataError(error) || isTooLongForIndex(error),
};

/**
 * The endpoints whose circuit breaker is open, and the subscriptions with a backlog, as the ledger has them: read each
 * second by every process. A row that a process does not know yet costs a delivery a way through the queue, and nothing
 * else.
 */
@Injectable()
export class OpenEndpoints implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  private readonly logger = new Logger(OpenEndpoints.name);
  private byAddress: ReadonlyMap<string, OpenEndpoint> = new Map();
  private backlogs: ReadonlySet<string> = new Set();
  private readonly reads = new SharedRuns(() => this.read());
  private poll: NodeJS.Timeout | undefined;
  private readonly polls = new RepeatedFailures(this.logger, {
    failed: { event: 'endpoints.refresh-failed' },
    worksAgain: { event: 'endpoints.refresh-works-again' },
  });
  private readonly openings = new Batcher<Opening, void>((batch) => this.openTogether(batch), together);
  private readonly closings = new Batcher<string, boolean>((batch) => this.closeTogether(batch), together);
  private readonly claims = new Batcher<ProbeClaim, boolean>((batch) => this.claimTogether(batch), together);
  private readonly endings = new Batcher<EndedProbe, void>((batch) => this.endTogether(batch), together);

  private readonly query: Query = (statement, values) => this.postgres.query(statement, values);

  constructor(
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.refresh();
    this.poll = setInterval(() => void this.polls.note(this.refresh()), pollIntervalMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.poll);
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.openings, this.closings, this.claims, this.endings].map((each) => each.drain()));
  }

  /** Resolves when all that was committed before the call is known. Calls that arrive together share one read. */
  refresh(): Promise<void> {
    return this.reads.request();
  }

  /**
   * The open endpoint that this callback leads to: its origin, or the URL alone; where both are open, the one that is
   * to be left alone for longer.
   */
  of(callback: Callback): OpenEndpoint | undefined {
    if (this.byAddress.size === 0) return undefined; // nearly always, and on the hot path
    const [origin, url] = endpointsOf(callback).map((address) => this.byAddress.get(address));
    if (!origin || !url) return origin ?? url;
    return url.nextProbeAt > origin.nextProbeAt ? url : origin;
  }

  /** By their addresses; another map after each read. */
  get all(): ReadonlyMap<string, OpenEndpoint> {
    return this.byAddress;
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

  /**
   * @param askedMs for which the receiver asked to be left alone; of an endpoint that is open already it counts from
   * now
   */
  open(address: string, reason: string, failures: number, askedMs?: number): Promise<void> {
    const probeInMs = askedMs ?? probePauses.shortestMs;
    return this.openings.add({ address, reason, failures, probeInMs, isAsked: askedMs !== undefined });
  }

  /**
   * A call to it was answered well.
   * @returns false: it was not open, or stays so, since it has asked for more time after the probe began
   */
  close(address: string): Promise<boolean> {
    return this.closings.add(address);
  }

  /**
   * @param addresses so many at most as are open
   * @param also runs in the same transaction, with those that were open, if any was. @returns whether any was
   */
  async reset(
    addresses: readonly string[],
    also: (query: Query, closed: readonly ClosedEndpoint[]) => Promise<void>,
  ): Promise<boolean> {
    const closed = await this.postgres.transaction(async (query) => {
      const were = await closeEndpoints(query, addresses, true);
      if (were.length > 0) await also(query, were);
      return were;
    });
    await this.haveClosed(closed, 'operator');
    return closed.length > 0;
  }

  /** No subscription leads to them. */
  async closeUnused(addresses: readonly string[]): Promise<void> {
    for (let at = 0; at < addresses.length; at += together.maxItems) {
      const some = addresses.slice(at, at + together.maxItems);
      await this.haveClosed(await closeEndpoints(this.query, some, true), 'unused');
    }
  }

  /**
   * The right to send a delivery that is due as a probe; given to one process, when a probe is due, or the delivery is
   * alone.
   */
  claimProbe({ address }: OpenEndpoint, subscriptionId: string): Promise<boolean> {
    return this.claims.add({ address, subscriptionId, isRelease: false });
  }

  /**
   * The right to release a held delivery as a probe, for each of these for which one is due. @returns those that got it
   */
  claimProbes(claims: readonly ProbeClaim[]): Promise<ProbeClaim[]> {
    return claimProbes(this.postgres, claims, probePauses);
  }

  /**
   * Probes of these are under way in this process. To be called a few times in the time of a lease. Never throws: the
   * next time makes up for it.
   */
  async keepProbes(addresses: readonly string[]): Promise<void> {
    try {
      await keepProbes(this.postgres, addresses, probePauses.leaseMs);
    } catch (error) {
      this.logger.warn({ event: 'endpoint.probe-failed', addresses, error });
    }
  }

  /**
   * The next probe may be claimed `pauseMs` after this, or when the lease has ended. Never throws.
   * @param foundNothing of the endpoint, so that the next one is not put off by it
   */
  async endProbe(address: string, pauseMs: number, foundNothing = false): Promise<void> {
    try {
      await this.endings.add({ address, pauseMs, foundNothing });
    } catch (error) {
      this.logger.warn({ event: 'endpoint.change-failed', address, error });
    }
  }

  private async openTogether(batch: Opening[]): Promise<void[]> {
    const opened = await openEndpoints(this.postgres, batch);
    for (const { address, reason, failures } of batch)
      if (opened.delete(address)) this.events.report({ event: 'endpoint.opened', address, reason, failures });
    await this.seeChange();
    return batch.map(() => undefined);
  }

  private async closeTogether(batch: string[]): Promise<boolean[]> {
    // None is probed before the time that it has asked for is over: what lies ahead was asked for after that.
    const closed = await closeEndpoints(this.query, batch, false);
    await this.haveClosed(closed, 'probe');
    const addresses = new Set(closed.map(({ address }) => address));
    return batch.map((address) => addresses.has(address));
  }

  private async haveClosed(closed: readonly ClosedEndpoint[], by: 'probe' | 'operator' | 'unused'): Promise<void> {
    for (const { address, openMs } of closed)
      this.events.report({ event: 'endpoint.closed', address, openMs: Math.round(openMs), by });
    await this.seeChange();
  }

  /** Never throws: the change is committed, whatever this look says, and the poll looks each second. */
  private seeChange(): Promise<void> {
    return this.polls.note(this.refresh());
  }

  private async claimTogether(batch: ProbeClaim[]): Promise<boolean[]> {
    const met = new Set(await this.claimProbes(batch));
    return batch.map((claim) => met.has(claim));
  }

  private async endTogether(batch: EndedProbe[]): Promise<void[]> {
    await endProbes(this.postgres, batch);
    return batch.map(() => undefined);
  }

  private async read(): Promise<void> {
    const [{ open, longestMs }, backlogs] = await Promise.all([
      readOpenEndpoints(this.postgres),
      readBacklogs(this.postgres),
    ]);
    this.byAddress = new Map(open.map((endpoint) => [endpoint.address, endpoint]));
    this.backlogs = backlogs;
    openGauge.set(open.length);
    longestOpenGauge.set(longestMs / 1000);
  }
}
