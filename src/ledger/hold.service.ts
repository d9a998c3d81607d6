import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf } from '../infra/postgres/statement.js';
import {
  inHandBounds,
  keyColumns,
  notificationIdOf,
  stillHandedOut,
  type Delivery,
  type HeldReason,
} from './delivery.js';
import { firstCredit, lookSoon } from './held-subscriptions.js';
import { onEachDay, perDay } from './per-day.js';
import { smallestWindow } from './release-window.js';

interface Hold extends Delivery {
  reason: HeldReason;
}

export const holds = rowsOf<Hold>('item', {
  ...keyColumns,
  generation: ['int', (item) => item.generation],
  reason: ['text', (item) => item.reason],
  is_released: ['bool', (item) => item.isReleased],
});

/**
 * Once a second; also where the last time lies further ahead than that of a transaction that began later, since
 * Postgres' clock was set back.
 */
const isShrunkAnew = `coalesce(
        EXCLUDED.shrunk_at NOT BETWEEN s.shrunk_at - interval '1 minute' AND s.shrunk_at + interval '1 s', EXCLUDED.shrunk_at IS NOT NULL)`;

/**
 * One that got the turn of its object has waited since it lined up, if no call has failed since: behind an endpoint
 * that is gone it may be too old for its retry policy already (free-held.ts). Counted from its turn, each in line would
 * wait for as long as its policy tries, one after the other, and a line would never end. Not while its subscription
 * drops what it held: it would be taken for one of those (drop-held.ts).
 */
const heldSince = `CASE WHEN d.object_key IS NOT NULL AND d.failures = 0
          AND NOT EXISTS (SELECT FROM held_drop AS noted WHERE noted.subscription_id = d.subscription_id)
        THEN coalesce(d.held_since, now()) ELSE now() END`;

/*
 * One that was released and found no room shows that too many are released at once: the window of its subscription is
 * halved, at most once a second, since all that were released too early come back together. It leaves the count of
 * those that are released and not settled: the next look would take it for settled, and widen the window. (A new row
 * begins with such a count, which the next look puts right.) In the order of the subscriptions, so that two batches
 * wait for each other instead of deadlocking.
 */
export const holdItems = perDay(
  'hold',
  (of) => `
    WITH held AS (
      UPDATE ${of('delivery')} d SET
        state = 'held', held_for = item.reason::held_reason, held_since = ${heldSince}, next_at = NULL, queued_at = NULL, process = NULL
      FROM ${holds.from} WHERE ${stillHandedOut}
      RETURNING d.subscription_id, item.reason, item.is_released
    )
    INSERT INTO held_subscription AS s (subscription_id, rate_credit, is_backlog, shrunk_at, outstanding)
    SELECT subscription_id, ${firstCredit}, bool_or(reason = 'endpoint-busy'), max(now()) FILTER (WHERE reason = 'endpoint-busy' AND is_released),
      count(*) FILTER (WHERE is_released)
    FROM held
    GROUP BY subscription_id ORDER BY subscription_id
    ON CONFLICT (subscription_id) DO UPDATE SET
      held_at = now(),
      look_at = ${lookSoon},
      is_backlog = s.is_backlog OR EXCLUDED.is_backlog,
      outstanding = GREATEST(0, s.outstanding - EXCLUDED.outstanding),
      release_window = CASE WHEN ${isShrunkAnew}
        THEN GREATEST(${smallestWindow}, s.release_window / 2) ELSE s.release_window END,
      shrunk_at = CASE WHEN ${isShrunkAnew}
        THEN EXCLUDED.shrunk_at ELSE s.shrunk_at END`,
);

/** Gives deliveries that may not be sent now back to the ledger, until a dispatcher releases them. Costs no attempt. */
@Injectable()
export class Holds implements OnApplicationShutdown {
  private readonly batcher = new Batcher<Hold, void>((batch) => this.holdTogether(batch), {
    maxItems: 512,
    // Where an endpoint is found to be in trouble, others mostly are as well.
    lingerMs: 25,
    lingersAlone: true,
    ...inHandBounds,
  });

  constructor(private readonly postgres: Postgres) {}

  /** Resolves after the commit. Does nothing to a delivery that is no longer queued in this generation. */
  hold(delivery: Delivery, reason: HeldReason): Promise<void> {
    return this.batcher.add({ ...delivery, reason });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.batcher.drain();
  }

  private async holdTogether(batch: Hold[]): Promise<void[]> {
    await onEachDay(batch, notificationIdOf, (day, items) => this.postgres.query(holdItems(day), holds.bind(items)));
    return batch.map(() => undefined);
  }
}
