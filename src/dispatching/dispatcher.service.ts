import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../infra/clock.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { anyDue, handOutDue } from '../ledger/hand-out-due.js';
import { anyNotInLine, lineUpDue } from '../ledger/line-up.js';
import { SinceLastLook, type Looked } from '../ledger/since-last-look.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Enqueuer } from '../queue/enqueuer.service.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { QueuePosition } from '../queue/queue-position.service.js';
import { onceEach } from './once-each.js';
import { passAllTurnsLeft, recoveryRules, type RecoveryRule } from './recovery-rules.js';
import { SendingEnded } from './sending-ended.js';

/**
 * A batch that is handed out is read, cut into chunks and published in one go, in a process that also delivers: of 8000
 * that were due at once, batches of 512 made what others published meanwhile wait twice as long (docs/performance.md),
 * and the 8000 were not sent sooner.
 */
const batchSize = 128;
/**
 * It is sorted from all that is due at the same moment, each time; and it keeps publishers waiting who publish about
 * the same objects.
 */
const lineUpBatchSize = 512;

/**
 * A delivery that another process had locked when it was passed over, and then did not hand out, waits for so long at
 * most.
 */
const everythingEveryMs = 60_000;

/**
 * From one look to the next, where a run waits for the end of all claims. Only its own looks, and where no other
 * process runs, as between the lines of cron, its own heartbeat, can show that a process that has not reported could
 * have.
 */
const untilDecidedMs = 500;
/**
 * Of all looks of such a wait, which are about forty; each may take as long as a statement may. Not in a row: where
 * nothing can be ended for long, looks have nothing to end for a while, and then fail again, for ever.
 */
const mostFailedLooks = 5;

export interface Recovered {
  /** How many were freed or ended. */
  deliveries: number;
  failedRules: string[];
}

/**
 * The one idempotent job: hands out what is due, and makes due again what was left behind. Any number of processes may
 * run it, as often as they like: each row is handed out by one of them (`FOR UPDATE SKIP LOCKED`) under a new
 * generation.
 */
@Injectable()
export class Dispatcher {
  private readonly logger = new Logger(Dispatcher.name);
  readonly rules: readonly RecoveryRule[];
  /** One of them. */
  readonly sendingEnded: SendingEnded;
  private readonly due: SinceLastLook;
  private readonly notInLine: SinceLastLook;

  constructor(
    private readonly postgres: Postgres,
    private readonly enqueuer: Enqueuer,
    position: QueuePosition,
    events: OperationalEvents,
    private readonly ledgerClock: LedgerClock,
    private readonly clock: Clock,
  ) {
    this.sendingEnded = new SendingEnded(postgres, events, ledgerClock, clock);
    this.rules = recoveryRules(postgres, position, events, this.sendingEnded, ledgerClock, clock);
    this.due = new SinceLastLook(ledgerClock, everythingEveryMs);
    this.notInLine = new SinceLastLook(ledgerClock, everythingEveryMs);
  }

  /**
   * Hands out everything that is due, as far as the queue takes it.
   * @param afterBatch told after every batch how many were handed out so far; the next one waits for it
   * @returns how many were handed out
   */
  async handOutDue(stopping: AbortSignal, afterBatch?: (handedOut: number) => unknown): Promise<number> {
    const { count } = await this.due.look((sinceMs, nowMs) => this.handOutSince(sinceMs, nowMs, stopping, afterBatch));
    return count;
  }

  private async handOutSince(
    sinceMs: number,
    nowMs: number,
    stopping: AbortSignal,
    afterBatch?: (handedOut: number) => unknown,
  ): Promise<Looked> {
    let [total, fromMs, everythingAt] = [0, sinceMs, nowMs];
    // A full or absent queue leaves the work where it is safe.
    while (this.enqueuer.isAccepting && !stopping.aborted) {
      // A backlog may take longer than that.
      if (this.ledgerClock.now() - everythingAt >= everythingEveryMs)
        [fromMs, everythingAt] = [0, this.ledgerClock.now()];
      // Far cheaper than a hand-out that finds nothing.
      if (!(await anyDue(this.postgres, fromMs))) return { count: total, upToMs: nowMs };
      const handedOut = await handOutDue(this.postgres, batchSize, this.enqueuer.process, fromMs);
      const count = handedOut.deliveries.length;
      if (count === 0) break;
      const refusing = await this.enqueuer.enqueueAll(handedOut);
      total += count;
      await afterBatch?.(total);
      // Those of a lane that is silent are due much later, and the others behind them go on.
      if (refusing.some((lane) => !this.enqueuer.isSilent(lane))) break;
      if (handedOut.upToMs < Infinity) fromMs = handedOut.upToMs;
    }
    return { count: total, upToMs: fromMs };
  }

  /**
   * Has all that is due and keeps order line up: what has its turn then is found by the next hand-out. Not a part of
   * that: a hundred thousand that are due at one moment take long, and the retries of all others do not wait for it,
   * nor where it fails.
   * @param afterBatch told after every batch
   */
  async lineUp(stopping: AbortSignal, afterBatch?: () => void): Promise<void> {
    await this.notInLine.look(async (sinceMs, nowMs) => {
      let [total, fromMs] = [0, sinceMs];
      while (!stopping.aborted) {
        if (!(await anyNotInLine(this.postgres, fromMs))) return { count: total, upToMs: nowMs };
        const { count, upToMs } = await lineUpDue(this.postgres, lineUpBatchSize, fromMs);
        // Another dispatcher sees to it, or has locked what is left.
        if (count === 0) break;
        total += count;
        afterBatch?.();
        if (upToMs < Infinity) fromMs = upToMs;
      }
      return { count: total, upToMs: fromMs };
    });
  }

  /** Frees or ends what one rule finds. @returns how many deliveries */
  async apply({ name, run }: RecoveryRule, stopping: AbortSignal): Promise<number> {
    const deliveries = await run(stopping);
    if (deliveries > 0) this.logger.log({ event: 'dispatcher.recovered', rule: name, deliveries });
    return deliveries;
  }

  /**
   * Applies every rule once, passes on the turns of what they ended, and has line up what is due. One that fails is
   * reported, and does not keep the next from running.
   */
  async recover(stopping: AbortSignal): Promise<Recovered> {
    let deliveries = 0;
    const rules = this.rules.map((rule) => ({
      name: rule.name,
      run: async () => void (deliveries += await this.apply(rule, stopping)),
    }));
    const tasks = [
      ...rules,
      { name: 'turns-of-ended', run: async () => void (deliveries += await passAllTurnsLeft(this.postgres, stopping)) },
      { name: 'line-up', run: () => this.lineUp(stopping) },
    ];
    const failedRules = await onceEach(tasks, ({ run }) => run(), this.logger, stopping);
    return { deliveries, failedRules };
  }

  /**
   * Applies that rule again and again, until all claims whose time is over have ended. Not with the others: these may
   * take so long that its statement has not come through for too long when its turn comes. A look that fails is
   * reported, and ends the wait only where too many do.
   */
  async endSending(stopping: AbortSignal): Promise<Recovered> {
    const { sendingEnded } = this;
    const rule = { name: sendingEnded.name, run: () => sendingEnded.run(stopping) };
    const failures = new RepeatedFailures(this.logger, { failed: { event: 'dispatcher.task-failed' } });
    let [deliveries, failed] = [0, 0];
    while (!stopping.aborted) {
      try {
        const areUndecided = await sendingEnded.anyUndecided();
        deliveries += await this.apply(rule, stopping);
        // Asked again: it is not said how long the answer took.
        if (!areUndecided && !(await sendingEnded.anyUndecided())) break;
      } catch (error) {
        failures.failed(error, { task: rule.name });
        if (++failed === mostFailedLooks) return { deliveries, failedRules: [rule.name] };
      }
      await this.clock.pause(untilDecidedMs, stopping);
    }
    return { deliveries, failedRules: [] };
  }
}
