import { Injectable } from '@nestjs/common';
import type { Gauge } from 'prom-client';
import { roles } from '../config/server-settings.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { recordMeasured } from '../ledger/last-measured.js';
import { measureLedger, type Count } from '../ledger/measure.js';
import { measureSize } from '../ledger/measure-size.js';
import { measureTroubled } from '../ledger/measure-troubled.js';
import { OldestUnfinished } from '../ledger/oldest-unfinished.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { DeliveryQueue, lanes, type Lane } from '../queue/delivery-queue.js';
import { readProgress } from '../queue/progress-reports.js';
import { QueueNotReached } from '../queue/queue-not-reached.js';
import { measureUnfinished } from '../replays/measure-unfinished.js';
import { openReplayStates, replayKinds } from '../replays/replay.js';
import {
  backlogGauge,
  deadGauge,
  dueGauge,
  estimatedGauge,
  heldGauge,
  ledgerBytesGauge,
  oldestGauge,
  queueAgeGauge,
  queueDepthGauge,
  replayDeliveriesGauge,
  replaysGauge,
  rolesGauge,
  subscriptionDeadGauge,
  unsentGauge,
} from './dispatching.metrics.js';
import type { UpkeepTask } from './upkeep.service.js';

/** Subscriptions that have series of their own: each is a UUID more in the memory of Prometheus. */
const mostSubscriptions = 20;

/** A worker that stops cancels its consumers first, and is alive until its calls have ended. */
const notReachedForMs = 60_000;

/** A process that is started for a moment is spared it. */
const firstAfterMs = 10_000;

interface Measurement extends UpkeepTask {
  firstAfterMs: number;
}

/**
 * Reads for `/metrics` what only the ledger and the queue know, so that a scrape reads nothing. Each statement is
 * bounded (docs/decisions/0043). A gauge that cannot be read has no value until it can be. Numbers of the overview are
 * left in the ledger too, because it is shown by other processes.
 */
@Injectable()
export class Measurements {
  /** For a process that dispatches for ever. */
  readonly tasks: readonly Measurement[] = [
    task('measure-ledger', 10_000, [backlogGauge, dueGauge, heldGauge, deadGauge, estimatedGauge, oldestGauge], () =>
      this.measureLedger(),
    ),
    task('measure-queue', 10_000, [queueDepthGauge, queueAgeGauge], () => this.measureQueue()),
    task('count-roles', 10_000, [rolesGauge], () => this.countRoles()),
    task('measure-replays', 10_000, [replaysGauge, replayDeliveriesGauge], () => this.measureReplays()),
    task('measure-subscriptions', 60_000, [unsentGauge, subscriptionDeadGauge], () => this.measureSubscriptions()),
    task('measure-size', 300_000, [ledgerBytesGauge], () => this.measureSize()),
  ];

  private readonly unfinished: OldestUnfinished;

  constructor(
    private readonly postgres: Postgres,
    private readonly queue: DeliveryQueue,
    private readonly heartbeat: Heartbeat,
    private readonly ledgerClock: LedgerClock,
  ) {
    this.unfinished = new OldestUnfinished(ledgerClock);
  }

  private async measureLedger(): Promise<void> {
    const measured = await measureLedger(this.postgres, this.unfinished);
    const { queued, sending, waiting, held, dead, due, oldestDueSeconds, oldestQueuedSeconds } = measured;
    const put = (gauge: Gauge, label: string, name: string, { count, isEstimate }: Count, value = name) => {
      gauge.set({ [label]: value }, count);
      estimatedGauge.set({ of: name }, Number(isEstimate));
    };
    const heldCounts = Object.values(held);
    const allHeld = {
      count: heldCounts.reduce((sum, { count }) => sum + count, 0),
      isEstimate: heldCounts.some(({ isEstimate }) => isEstimate),
    };
    for (const [state, count] of Object.entries({ queued, sending, waiting, held: allHeld }))
      put(backlogGauge, 'state', state, count);
    for (const [reason, count] of Object.entries(held)) put(heldGauge, 'reason', `held for ${reason}`, count, reason);
    for (const [state, count] of Object.entries(dead)) put(deadGauge, 'state', state, count);
    put(dueGauge, 'lane', 'due', due.first);
    put(dueGauge, 'lane', 'slow', due.repeated, 'slow');
    oldestGauge.set({ state: 'due' }, oldestDueSeconds);
    oldestGauge.set({ state: 'queued' }, oldestQueuedSeconds);
    await recordMeasured(this.postgres, 'ledger', measured);
  }

  /** A lane is first in, first out: what is in it was handed over after the newest message that was taken. */
  private async measureQueue(): Promise<void> {
    const oldest = await this.unfinished.find((item, values) => this.postgres.query(item, values), 'queued');
    const oldestSeconds = oldest?.seconds ?? 0;
    const reports = await readProgress(this.postgres);
    const measure = async (lane: Lane) => {
      const depth = await this.depthOf(lane);
      if (depth === undefined) {
        queueDepthGauge.remove({ lane });
        queueAgeGauge.remove({ lane });
        return;
      }
      const newestTaken = reports.find((report) => report.lane === lane)?.newestTaken ?? -Infinity;
      const atMostSeconds = Math.max(0, (this.ledgerClock.now() - newestTaken) / 1000);
      queueDepthGauge.set({ lane }, depth);
      queueAgeGauge.set({ lane }, depth === 0 ? 0 : Math.min(atMostSeconds, oldestSeconds));
    };
    await Promise.all(lanes.map(measure));
  }

  /** Undefined: it is not known at the moment, as while a worker starts or stops. */
  private async depthOf(lane: Lane): Promise<number | undefined> {
    try {
      return await this.queue.depth(lane);
    } catch (error) {
      if (error instanceof QueueNotReached && error.forMs < notReachedForMs) return undefined;
      throw error;
    }
  }

  private async countRoles(): Promise<void> {
    const alive = await this.heartbeat.countAlive();
    for (const role of roles) rolesGauge.set({ role }, alive.get(role) ?? 0);
  }

  /** Of a kind and state that has none it is 0, so that the end of the last one can be seen. */
  private async measureReplays(): Promise<void> {
    const unfinished = await measureUnfinished(this.postgres);
    for (const kind of replayKinds) {
      const ofKind = unfinished.filter((each) => each.kind === kind);
      for (const state of openReplayStates)
        replaysGauge.set({ kind, state }, ofKind.find((each) => each.state === state)?.replays ?? 0);
      for (const progress of ['done', 'left'] as const)
        replayDeliveriesGauge.set(
          { kind, progress },
          ofKind.reduce((sum, each) => sum + each[progress], 0),
        );
    }
  }

  private async measureSubscriptions(): Promise<void> {
    const troubled = await measureTroubled(this.postgres, mostSubscriptions);
    for (const gauge of [unsentGauge, subscriptionDeadGauge]) gauge.reset(); // others were in trouble before
    for (const { subscriptionId: subscription, unsent, dead } of troubled) {
      unsentGauge.set({ subscription }, unsent);
      subscriptionDeadGauge.set({ subscription }, dead);
    }
    await recordMeasured(this.postgres, 'subscriptions', troubled);
  }

  private async measureSize(): Promise<void> {
    const bytesByDay = await measureSize(this.postgres);
    ledgerBytesGauge.reset(); // days may have been dropped
    for (const [day, bytes] of bytesByDay) ledgerBytesGauge.set({ day }, bytes);
    const bytes = [...bytesByDay.values()].reduce((sum, ofDay) => sum + ofDay, 0);
    await recordMeasured(this.postgres, 'size', { bytes });
  }
}

/** A value that cannot be measured any more would be taken for one of now. */
function task(name: string, everyMs: number, gauges: readonly Gauge[], measure: () => Promise<void>): Measurement {
  const run = async () => {
    try {
      await measure();
    } catch (error) {
      for (const gauge of gauges) gauge.reset();
      throw error;
    }
  };
  return { name, everyMs, firstAfterMs, run };
}
