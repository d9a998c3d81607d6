import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { generationOf, handedOut, inHandBounds, notificationIdOf, stillHandedOut, type Delivery } from './delivery.js';
import { onEachDay, perDay } from './per-day.js';
import { stillQueued } from './still-queued.js';

// Not what another process has in its hand already, or none has, for it may have been left (below).
export const keepItems = perDay(
  'keep-in-hand',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET process = $process, queued_at = NULL, next_at = now() + $lease_ms * interval '1 ms'
   FROM ${handedOut.from} WHERE ${stillHandedOut} AND (d.queued_at IS NOT NULL OR d.process = $process)`,
);

// From then on it is in its holder's hand, whose death frees it; where that is null, only its lease does. The chunk
// that it came with may be kept at the same moment, in either order. If that gave it the lease of another process, one
// whose holder has died would wait for minutes.
export const leaveItems = perDay(
  'leave-to-holder',
  (of) => `UPDATE ${of('delivery')} d SET
     process = $holder, queued_at = NULL, next_at = LEAST(d.next_at, now() + $lease_ms * interval '1 ms')
   FROM ${handedOut.from} WHERE ${stillHandedOut}`,
);

/**
 * Of one statement: a process may have 16,384 in hand, and results of those that end meanwhile wait for the lock of
 * their row.
 */
const writtenTogether = 1024;

/** Deliveries that this process has in hand, and that the queue has forgotten. */
@Injectable()
export class DeliveriesInHand {
  private readonly looks = new Batcher<Delivery, boolean>((batch) => this.lookTogether(batch), {
    maxItems: 512,
    lingerMs: 5,
    ...inHandBounds,
  });
  private readonly keeping = new Batcher<Delivery, void>((batch) => this.keepTogether(batch), {
    maxItems: writtenTogether,
    // Beside receivers that hang, hundreds of chunks a second are left with a delivery or two, each of which needs a
    // lease.
    lingerMs: 25,
    lingersAlone: true,
    ...inHandBounds,
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
    private readonly config: Config,
  ) {}

  /**
   * From now on the queue may forget these: the death of this process frees them. A delivery that is not settled when
   * the lease ends is handed out again. A delivery that another process has in hand stays there.
   */
  async keep(deliveries: Delivery[]): Promise<void> {
    await Promise.all(deliveries.map((delivery) => this.keeping.add(delivery)));
  }

  /**
   * The queue may forget this one: the process `holder` is sending it by another message. It is handed out again when
   * that one dies, and unless it is settled in `leaseMs`. Where the holder is this very process it comes into no hand,
   * and only the lease frees it: in that of this one it would be kept for minutes with its chunk, in either order, and
   * perhaps nobody is sending it any more.
   */
  async leaveToHolder(delivery: Delivery, holder: string | null, leaseMs: number): Promise<void> {
    const process = holder === this.heartbeat.processId ? null : holder;
    await onEachDay([delivery], notificationIdOf, (day, items) =>
      this.postgres.query(leaveItems(day), { ...handedOut.bind(items), holder: process, lease_ms: leaseMs }),
    );
  }

  /** false: it was settled, cancelled, or handed out again. */
  isStillQueued(delivery: Delivery): Promise<boolean> {
    return this.looks.add(delivery);
  }

  private async lookTogether(batch: Delivery[]): Promise<boolean[]> {
    const { deliveries } = await stillQueued(this.postgres, batch);
    const found = new Set(deliveries.map(generationOf));
    return batch.map((delivery) => found.has(generationOf(delivery)));
  }

  private async keepTogether(batch: Delivery[]): Promise<void[]> {
    const { processId: process } = this.heartbeat;
    const { DELIVERY_LEASE_MS: lease_ms } = this.config.settings;
    await onEachDay(batch, notificationIdOf, (day, items) =>
      this.postgres.query(keepItems(day), { ...handedOut.bind(items), process, lease_ms }),
    );
    return batch.map(() => undefined);
  }
}
