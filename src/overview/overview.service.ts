import { Injectable, Logger } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { alertToShow } from '../alerts/alerts-io.js';
import { readOpenAlerts } from '../alerts/open-alerts.js';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { originOf } from '../endpoints/origin.js';
import { HealthChecks } from '../health/health-checks.service.js';
import { entityTagOf } from '../infra/http/if-match.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { readMeasured, type LastMeasured } from '../ledger/last-measured.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { measureUnfinished } from '../replays/measure-unfinished.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { ComputedSeldom } from './computed-seldom.js';
import type { OverviewAnswer } from './overview-io.js';
import { mostProcesses, processToShow } from './process-output.js';
import { readRecentActivity } from './recent-activity.js';

/** A browser asks every few seconds, and there may be many. */
const computedEveryMs = 2000;
/** Of each list: the answer is a glance. Each has a page of its own. */
const mostOfEach = 5;

/** The answer, and the tag of its numbers. */
export interface TaggedOverview {
  answer: OverviewAnswer;
  tag: string;
}

/** Puts together what is known already: in memory, or in a row that somebody wrote. It counts nothing. */
@Injectable()
export class Overview {
  private readonly logger = new Logger(Overview.name);
  private readonly shared = new ComputedSeldom(() => this.compute(), computedEveryMs);

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
    private readonly ledgerClock: LedgerClock,
    private readonly modules: ModuleRef,
    private readonly openEndpoints: OpenEndpoints,
    private readonly subscriptions: SubscriptionDirectory,
  ) {}

  /** Not older than two seconds; computed once, however many ask. */
  get(): Promise<TaggedOverview> {
    return this.shared.get();
  }

  private async compute(): Promise<TaggedOverview> {
    const { status, parts } = await this.modules.get(HealthChecks, { strict: false }).look();
    const isPostgresUp = parts['postgres']?.status === 'up';
    const unless = <T>(part: string, read: () => Promise<T>) => (isPostgresUp ? this.orNull(part, read) : null);
    const now = this.ledgerClock.now();
    const [processes, activity, measured, replays, alerts] = await Promise.all([
      unless('processes', () => this.heartbeat.list(mostProcesses)),
      unless('activity', () => readRecentActivity(this.postgres, now)),
      unless('measurements', () => readMeasured(this.postgres)),
      unless('replays', () => measureUnfinished(this.postgres)),
      unless('alerts', () => readOpenAlerts(this.postgres, mostOfEach)),
    ]);
    const numbers = {
      health: {
        status,
        parts: Object.entries(parts).map(([name, part]) => ({ name, status: part.status, error: part.error ?? null })),
      },
      processes: processes?.map((each) => processToShow(each, this.heartbeat.processId)) ?? null,
      activity,
      backlog: backlogToShow(measured?.ledger),
      deadLetters: measured?.ledger
        ? { measuredAt: measured.ledger.at.toISOString(), ...measured.ledger.found.dead }
        : null,
      endpoints: this.endpoints(),
      subscriptions: { ...this.halted(), troubled: this.troubled(measured?.subscriptions) },
      replays,
      alerts: alerts && { openCount: alerts.count, latest: alerts.latest.map(alertToShow) },
    };
    const answer = { computedAt: new Date(now).toISOString(), ...numbers };
    return { answer, tag: entityTagOf(withoutHeard(numbers)) };
  }

  /** One part that cannot be read keeps nobody from the others. */
  private async orNull<T>(part: string, read: () => Promise<T>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      this.logger.warn({ event: 'overview.part-not-read', part, error });
      return null;
    }
  }

  private endpoints(): OverviewAnswer['endpoints'] {
    const open = this.openEndpoints.list();
    const longest = open
      .sort((one, other) => one.openedAt.getTime() - other.openedAt.getTime())
      .slice(0, mostOfEach)
      .map(({ address, reason, openedAt, nextProbeAt }) => ({
        address,
        reason,
        openedAt: openedAt.toISOString(),
        nextProbeAt: nextProbeAt.toISOString(),
      }));
    return { openCount: open.length, longest };
  }

  private halted(): Omit<OverviewAnswer['subscriptions'], 'troubled'> {
    let count = 0;
    let haltedCount = 0;
    const disabled: Halted[] = [];
    const paused: Halted[] = [];
    for (const subscription of this.subscriptions.all()) {
      count += 1;
      if (subscription.disabledAt || subscription.pausedAt) haltedCount += 1;
      if (subscription.disabledAt) disabled.push({ subscription, since: subscription.disabledAt });
      if (subscription.pausedAt) paused.push({ subscription, since: subscription.pausedAt });
    }
    return { count, haltedCount, disabled: haltedToShow(disabled), paused: haltedToShow(paused) };
  }

  private troubled(measured: LastMeasured['subscriptions']): OverviewAnswer['subscriptions']['troubled'] {
    if (!measured) return null;
    const most = measured.found.slice(0, mostOfEach).flatMap(({ subscriptionId, unsent, dead }) => {
      const subscription = this.subscriptions.find(subscriptionId);
      return subscription ? [{ ...subscriptionToShow(subscription), unsent, dead }] : [];
    });
    return { measuredAt: measured.at.toISOString(), most };
  }
}

interface Halted {
  subscription: Subscription;
  since: Date;
}

/** A callback URL may hold a key: its path is for those who look at the subscription. */
const subscriptionToShow = ({ id, callbackUrl }: Subscription) => ({ id, receiver: originOf(callbackUrl) });

const haltedToShow = (halted: Halted[]) => ({
  count: halted.length,
  latest: halted
    .sort((one, other) => other.since.getTime() - one.since.getTime())
    .slice(0, mostOfEach)
    .map(({ subscription, since }) => ({ ...subscriptionToShow(subscription), since: since.toISOString() })),
});

function backlogToShow(measured: LastMeasured['ledger']): OverviewAnswer['backlog'] {
  if (!measured) return null;
  const { at, found } = measured;
  const { queued, sending, waiting, held, due, oldestDueSeconds, oldestQueuedSeconds } = found;
  const before = (seconds: number) => (seconds > 0 ? new Date(at.getTime() - seconds * 1000).toISOString() : null);
  return {
    measuredAt: at.toISOString(),
    queued,
    sending,
    waiting,
    held,
    due: { count: due.first.count + due.repeated.count, isEstimate: due.first.isEstimate },
    oldestDueAt: before(oldestDueSeconds),
    oldestQueuedAt: before(oldestQueuedSeconds),
  };
}

/** Signs of life come every two seconds, and say nothing new. */
const withoutHeard = <T extends { processes: OverviewAnswer['processes'] }>(numbers: T): object => ({
  ...numbers,
  processes: numbers.processes?.map(({ heardAt, isAlive, ...rest }) => ({
    ...rest,
    isAlive,
    heardAt: isAlive ? null : heardAt,
  })),
});
