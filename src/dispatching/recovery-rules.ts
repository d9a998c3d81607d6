import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { dropHeld, forgetDrop, readDrops } from '../ledger/drop-held.js';
import {
  endDeliveries,
  forgetEnding,
  readEndings,
  subscriptionDisabled,
  type NotedEnding,
} from '../ledger/end-of-subscription.js';
import { forgetOrderEnding, freeLine, readOrderEndings } from '../ledger/end-of-order.js';
import { freeHeldExpired } from '../ledger/free-held.js';
import { freeAfterLease } from '../ledger/free-after-lease.js';
import { freeOfDeadProcesses } from '../ledger/free-of-dead-processes.js';
import { anyQueuedFor, freeQueuedBefore } from '../ledger/free-queued-before.js';
import { findTurnsLeft, passTurns } from '../ledger/pass-turn.js';
import { SinceLastLook, type Looked } from '../ledger/since-last-look.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { OperationalEvents } from '../operational-events/operational-events.service.js';
import { readQueueCreation } from '../queue/progress-reports.js';
import type { QueuePosition } from '../queue/queue-position.service.js';
import { doNoted, inBatches, inPacedBatches } from './in-batches.js';
import type { SendingEnded } from './sending-ended.js';

/** From the end of a delivery to its worker's passing its turn on. The end itself may have come from elsewhere. */
const passingSlackMs = 500;
/**
 * From the commit of a hand-out to its publishing, at most. After that time a rule assumes that it was not published.
 */
const publishingSlackMs = 5000;

/** Something that can happen to deliveries on their way, and how it is found and mended. */
export interface RecoveryRule {
  /** In logs. */
  name: string;
  /** Runs bounded statements until there is no more to do in this round. @returns how many deliveries it freed or ended */
  run: (stopping: AbortSignal) => Promise<number>;
}

/**
 * Every way in which a delivery can be left behind, each with its rule. Each statement is bounded and finds its rows by
 * a partial index of its own; any number of processes may run it, as often as they like. A delivery that is freed is
 * due at once, and is handed out under a new generation.
 */
export function recoveryRules(
  postgres: Postgres,
  position: QueuePosition,
  events: OperationalEvents,
  sending: SendingEnded,
  ledgerClock: LedgerClock,
  clock: Clock,
): RecoveryRule[] {
  const sinceLastLook = (find: (sinceMs: number, limit: number) => Promise<number>) => {
    const looks = new SinceLastLook(ledgerClock);
    return async (stopping: AbortSignal) => {
      const { count } = await looks.look(async (sinceMs, nowMs) => {
        const found = await inBatches((limit) => find(sinceMs, limit), stopping);
        return unlessFound(found, nowMs);
      });
      return count;
    };
  };
  const queued = new SinceLastLook(ledgerClock);
  return [
    {
      // The process that had it in hand, or as its queue in memory, no longer shows signs of life.
      name: 'process-died',
      run: (stopping) => inBatches((limit) => freeOfDeadProcesses(postgres, limit), stopping),
    },
    {
      // It has been in a worker's hand for longer than its lease: the worker hangs, or its result was never written.
      name: 'lease-ended',
      run: sinceLastLook((sinceMs, limit) => freeAfterLease(postgres, sinceMs, limit)),
    },
    { name: sending.name, run: (stopping) => sending.run(stopping) },
    {
      // A subscription was deleted or disabled; the transaction that did so left its deliveries to this rule.
      name: 'subscription-ended',
      run: (stopping) =>
        doNoted(
          {
            read: readEndings,
            work: endDeliveries,
            worked: (ending, count) => reportEnded(events, ending, count),
            forget: forgetEnding,
          },
          postgres,
          stopping,
        ),
    },
    {
      // It ended without a worker, or the worker did not come to pass its turn on: others about the same object wait
      // for that.
      name: 'turn-not-passed',
      run: sinceLastLook((sinceMs, limit) => passTurnsLeft(postgres, sinceMs, passingSlackMs, limit)),
    },
    {
      // A subscription keeps order no more; what is in line for it goes.
      name: 'order-ended',
      run: (stopping) =>
        doNoted({ read: readOrderEndings, work: freeLine, forget: forgetOrderEnding }, postgres, stopping),
    },
    {
      // An operator had a paused subscription drop what it held. A drop of which a delivery is locked stays noted until
      // the next round.
      name: 'held-dropped',
      run: (stopping) => doNoted({ read: readDrops, work: dropHeld, forget: forgetDrop }, postgres, stopping),
    },
    {
      // It was held until it was no longer worth sending. A worker ends it. Hundreds of thousands that were accepted
      // within a minute are too old within a minute.
      name: 'held-expired',
      run: (stopping) => inPacedBatches((limit) => freeHeldExpired(postgres, limit), clock, stopping),
    },
    {
      // The broker lost its queues. The new ones hold nothing that was handed out before the process that created them
      // said so; where another process was faster, the second message is superfluous and is filtered. Where Postgres'
      // clock was set back since, the next rule finds what was lost.
      name: 'queue-is-new',
      run: async (stopping) => {
        const createdAt = await readQueueCreation(postgres);
        if (createdAt === undefined) return 0;
        return inBatches((limit) => freeQueuedBefore(postgres, 0, createdAt, limit), stopping);
      },
    },
    {
      // A process died before it published the delivery, or the queue dropped the message. All that was handed out
      // before this time has been taken and is done, yet the row is still queued. A delivery handed out later may stand
      // in line: to hand it out a second time would only make the line longer (docs/decisions/0016).
      name: 'queue-lost-it',
      run: async (stopping) => {
        const { count } = await queued.look(async (sinceMs, nowMs) => {
          if (!(await anyQueuedFor(postgres, sinceMs, publishingSlackMs)))
            return { count: 0, upToMs: nowMs - publishingSlackMs };
          const lostBefore = (await position.findDoneUpTo()) - publishingSlackMs;
          const free = (limit: number) => freeQueuedBefore(postgres, sinceMs, lostBefore, limit);
          return unlessFound(await inBatches(free, stopping), lostBefore);
        });
        return count;
      },
    },
  ];
}

/** Of deliveries that ended so long ago. @returns how many */
async function passTurnsLeft(postgres: Postgres, sinceMs: number, forMs: number, limit: number): Promise<number> {
  const left = await findTurnsLeft(postgres, sinceMs, forMs, limit);
  await passTurns(postgres, left, { state: 'waiting', delayMs: 0 });
  return left.length;
}

/**
 * For a round that is not followed by another: the turns of what the rules have just ended as well. A worker may be
 * about to pass on some of them itself, which does no harm.
 */
export const passAllTurnsLeft = (postgres: Postgres, stopping: AbortSignal): Promise<number> =>
  inBatches((limit) => passTurnsLeft(postgres, 0, 0, limit), stopping);

/** Of what a rule finds some may be left: a turn that found nobody in a hundred places. */
const unlessFound = (count: number, upToMs: number): Looked => ({ count, upToMs: count === 0 ? upToMs : undefined });

/** As one: there may be a million. */
function reportEnded(events: OperationalEvents, { subscriptionId, state }: NotedEnding, count: number): void {
  if (state !== 'failed' || count === 0) return;
  const reason = subscriptionDisabled;
  events.report({ event: 'delivery.dead', notificationId: null, subscriptionId, state, reason, count });
}
