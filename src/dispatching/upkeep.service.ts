import { Injectable, Logger } from '@nestjs/common';
import { sweepActivity } from '../activity/activity-rows.js';
import { dropExpiredMonths, makeMonthsAhead } from '../audit/months-kept.js';
import { Config } from '../config/config.module.js';
import { sweepDigests, writeDigests } from '../digests/write-digests.js';
import { Clock } from '../infra/clock.js';
import { IdempotencyStore } from '../idempotency/idempotency-store.js';
import { checkpointEmbedded } from '../infra/postgres/checkpoint-embedded.js';
import { freezeEmbedded } from '../infra/postgres/freeze-embedded.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { sweepOnceKeys } from '../ledger/once-key.js';
import { PartitionKeeper } from '../ledger/partition-keeper.service.js';
import { SinceLastLook } from '../ledger/since-last-look.js';
import { sweepLiveEvents } from '../live-events/event-table.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { sweepProgress } from '../queue/progress-reports.js';
import { ReplayRunner } from '../replays/replay-runner.service.js';
import { BodyRetention } from '../retention/body-retention.service.js';
import { DayDropper } from '../retention/day-dropper.service.js';
import { ErasureWork } from '../retention/erasure-work.service.js';
import { sweepSessions } from '../sessions/session-rows.js';
import { SigningKeys } from '../subscriptions/signing-keys.service.js';
import { acceptedWithin } from './accepted-within.js';
import { HeldTooLongRule } from './held-too-long.service.js';
import { inBatches } from './in-batches.js';
import { onceEach } from './once-each.js';
import { UnusedEndpoints } from './unused-endpoints.service.js';
import { whenClocksAgree } from './when-clocks-agree.js';

const secondMs = 1000;
const minuteMs = 60_000;
const hourMs = 3_600_000;
const daySeconds = 86_400;

export interface UpkeepTask {
  /** In logs. */
  name: string;
  /** How often a process that runs for ever does it. */
  everyMs: number;
  /** In such a process, from its start to the first time; at once where it is not given. */
  firstAfterMs?: number;
  run: (stopping: AbortSignal) => Promise<unknown>;
}

/**
 * The tasks that keep the ledger small, and ready for tomorrow. Any number of processes may do it, as often as they
 * like.
 */
@Injectable()
export class Upkeep {
  private readonly logger = new Logger(Upkeep.name);
  readonly tasks: readonly UpkeepTask[];

  constructor(
    postgres: Postgres,
    { settings }: Config,
    heartbeat: Heartbeat,
    ledgerClock: LedgerClock,
    partitions: PartitionKeeper,
    idempotency: IdempotencyStore,
    heldTooLong: HeldTooLongRule,
    signingKeys: SigningKeys,
    replays: ReplayRunner,
    erasures: ErasureWork,
    bodies: BodyRetention,
    days: DayDropper,
    unusedEndpoints: UnusedEndpoints,
    clock: Clock,
  ) {
    const { AUDIT_RETENTION_DAYS: auditDays, IDEMPOTENCY_KEY_TTL_SEC: keySeconds } = settings;
    // A request that is repeated under its key is answered with the replay that it made.
    const replayDays = Math.max(auditDays, keySeconds / daySeconds);
    const digestsUntil = () => ledgerClock.now() - acceptedWithin(heartbeat.longestTimeout);
    const by = { ledgerClock, clock, logger: this.logger };
    /**
     * Sweeps rows whose time has been over since the last sweep, and each hour all whose time is over: behind a
     * snapshot, a backup's for example, a sweep of everything walks over each row that the ones before have removed.
     */
    const overSinceLast = (sweep: (sinceMs: number, limit: number) => Promise<number>) => {
      const looks = new SinceLastLook(ledgerClock, hourMs);
      return (stopping: AbortSignal) =>
        looks.look(async (sinceMs, nowMs) => {
          const count = await inBatches((limit) => sweep(sinceMs, limit), stopping);
          return { count, upToMs: stopping.aborted ? undefined : nowMs };
        });
    };
    const retaining = (task: UpkeepTask) => ({ ...task, run: whenClocksAgree(task.name, task.run, by) });
    this.tasks = [
      {
        name: 'sweep-locks',
        everyMs: minuteMs,
        run: overSinceLast((sinceMs, limit) => idempotency.sweep(sinceMs, limit)),
      },
      // Of all that is swept by its time, those rest that nobody can make anew: a publisher's request that is repeated
      // without its key, for example, is carried out again.
      retaining({
        name: 'sweep-keys',
        everyMs: minuteMs,
        run: overSinceLast((sinceMs, limit) => sweepOnceKeys(postgres, sinceMs, limit)),
      }),
      { name: 'sweep-processes', everyMs: minuteMs, run: () => heartbeat.sweep() },
      { name: 'held-too-long', everyMs: minuteMs, run: (stopping) => heldTooLong.free(stopping) },
      { name: 'close-unused-endpoints', everyMs: minuteMs, run: () => unusedEndpoints.close() },
      retaining({ name: 'erase-signing-keys', everyMs: minuteMs, run: (stopping) => signingKeys.eraseEnded(stopping) }),
      { name: 'sweep-sessions', everyMs: minuteMs, run: (stopping) => sweepSessions(postgres, stopping) },
      { name: 'sweep-progress', everyMs: minuteMs, run: () => sweepProgress(postgres) },
      { name: 'bring-replays-forward', everyMs: minuteMs, run: () => replays.bringForward() },
      retaining({ name: 'sweep-replays', everyMs: hourMs, run: () => replays.sweep(replayDays) }),
      {
        name: 'sweep-live-events',
        everyMs: minuteMs,
        run: overSinceLast((sinceMs, limit) => sweepLiveEvents(postgres, sinceMs, limit)),
      },
      {
        name: 'sweep-activity',
        everyMs: minuteMs,
        run: (stopping) => inBatches((limit) => sweepActivity(postgres, limit), stopping),
      },
      {
        name: 'write-digests',
        everyMs: 10_000,
        run: (stopping) => writeDigests(postgres, digestsUntil(), stopping, clock),
      },
      {
        // Not a part of writing them: a day that is dropped may leave many, and what fails here keeps no digest from
        // being written.
        name: 'sweep-digests',
        everyMs: minuteMs,
        run: (stopping) => inBatches((limit) => sweepDigests(postgres, limit), stopping),
      },
      { name: 'vacuum', everyMs: 5 * minuteMs, run: () => partitions.vacuumEmbedded() },
      // Not in the middle of the start, nor by a process that is started for a moment.
      {
        name: 'freeze',
        everyMs: hourMs,
        firstAfterMs: minuteMs,
        run: (stopping) => freezeEmbedded(postgres, stopping),
      },
      { name: 'checkpoint', everyMs: 10_000, run: () => checkpointEmbedded(postgres) },
      { name: 'forget-statements', everyMs: 24 * hourMs, run: () => postgres.forgetStatements() },
      { name: 'make-partitions', everyMs: hourMs, run: () => partitions.makeAhead() },
      retaining({ name: 'erase-old-bodies', everyMs: hourMs, run: (stopping) => bodies.eraseOld(stopping) }),
      { name: 'work-off-erasures', everyMs: secondMs, run: (stopping) => erasures.workOff(stopping) },
      retaining({ name: 'sweep-erasures', everyMs: hourMs, run: () => erasures.sweep() }),
      { name: 'make-audit-months', everyMs: hourMs, run: () => makeMonthsAhead(postgres) },
      retaining({
        name: 'drop-audit-months',
        everyMs: hourMs,
        run: (stopping) => dropExpiredMonths(postgres, auditDays, this.logger, stopping),
      }),
      // Done once, the last: a day that is exported waits for what is to be erased of it.
      retaining({ name: 'drop-partitions', everyMs: hourMs, run: (stopping) => days.dropExpired(stopping) }),
    ];
  }

  /**
   * Does everything once. A task that fails is reported, and does not keep the next from running.
   * @returns those that failed
   */
  once(stopping: AbortSignal): Promise<string[]> {
    return onceEach(this.tasks, (task) => task.run(stopping), this.logger, stopping);
  }
}
