import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { IdempotencyStore } from '../idempotency/idempotency-store.js';
import { Leases } from '../ledger/leases.service.js';
import { Ledger } from '../ledger/ledger.service.js';
import { PartitionKeeper } from '../ledger/partition-keeper.service.js';
import { Dispatcher } from './dispatcher.service.js';

const recoverEveryMs = 1000;
const sweepEveryMs = 60_000;
const vacuumEveryMs = 300_000;
const partitionsEveryMs = 3_600_000;

interface Duty {
  name: string;
  everyMs: number;
  run: () => Promise<unknown>;
}

/** Runs the dispatcher's duties for as long as the process lives, each in its own rhythm and never twice at once. */
@Injectable()
export class DispatchLoop implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(DispatchLoop.name);
  private readonly duties: Duty[];
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly running = new Set<Promise<void>>();
  private stopping = false;

  constructor(
    config: Config,
    dispatcher: Dispatcher,
    ledger: Ledger,
    leases: Leases,
    partitions: PartitionKeeper,
    idempotency: IdempotencyStore,
  ) {
    this.duties = [
      { name: 'dispatch', everyMs: config.settings.DISPATCH_INTERVAL_MS, run: () => dispatcher.dispatchDue() },
      { name: 'recover', everyMs: recoverEveryMs, run: () => dispatcher.recover() },
      { name: 'sweep', everyMs: sweepEveryMs, run: () => idempotency.sweep() },
      { name: 'sweep-processes', everyMs: sweepEveryMs, run: () => leases.sweepProcesses() },
      { name: 'sweep-keys', everyMs: sweepEveryMs, run: () => ledger.sweepKeys() },
      { name: 'vacuum', everyMs: vacuumEveryMs, run: () => partitions.vacuumEmbedded() },
      { name: 'partitions', everyMs: partitionsEveryMs, run: () => keepPartitions(partitions) },
    ];
  }

  onApplicationBootstrap(): void {
    for (const duty of this.duties) this.schedule(duty, 0);
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    for (const timer of this.timers) clearTimeout(timer);
    await Promise.all(this.running);
  }

  private schedule(duty: Duty, delayMs: number): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      const run = this.perform(duty).finally(() => {
        this.running.delete(run);
        if (!this.stopping) this.schedule(duty, duty.everyMs);
      });
      this.running.add(run);
    }, delayMs);
    this.timers.add(timer);
  }

  private async perform(duty: Duty): Promise<void> {
    try {
      await duty.run();
    } catch (error) {
      // Nothing is lost by it: all state is in the ledger, and the next round starts from there.
      this.logger.warn({ event: 'dispatcher.duty-failed', duty: duty.name, error });
    }
  }
}

async function keepPartitions(partitions: PartitionKeeper): Promise<void> {
  await partitions.makeAhead();
  await partitions.dropExpired();
}
