import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import {
  generationOf,
  generationsIn,
  handedOut,
  mostInHand,
  notificationIdOf,
  stillHandedOut,
  type Delivery,
  type KeyRow,
} from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, onEachDay, perDay } from './per-day.js';

/** For the way from the claim to the call and from the answer to the ledger, before an outcome counts as never learnt. */
const slackMs = 15_000;

/** Committed before the call: Heraut never sends these again by itself. */
export const claimItems = perDay(
  'claim-sending',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET state = 'sending', next_at = now() + $limit_ms * interval '1 ms', process = $process
   FROM ${handedOut.from} WHERE ${stillHandedOut}
   RETURNING d.notification_id, d.subscription_id, d.generation`,
);

/** The claims of a day could not be written, or not be heard of. */
class NotClaimed {
  constructor(readonly cause: unknown) {}
}

/** The right to send at-most-once deliveries, given once for each of their generations. */
@Injectable()
export class SendingClaims {
  private readonly limitMs: number;
  private readonly batcher = new Batcher<Delivery, boolean | NotClaimed>((batch) => this.claimTogether(batch), {
    maxItems: 256,
    lingerMs: 1,
    // A claim that is refused was not made: the worker, which has the delivery in hand, asks again.
    room: { items: mostInHand },
    turnWithinMs: 30_000,
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
    { settings }: Config,
  ) {
    this.limitMs = settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000 + slackMs;
  }

  /** Resolves after the commit. @returns true at most once for each generation of a delivery */
  async claim(delivery: Delivery): Promise<boolean> {
    const answer = await this.batcher.add(delivery);
    if (answer instanceof NotClaimed) throw answer.cause;
    return answer;
  }

  /** A claim that was granted must be heard of, or it is lost: a day that fails takes no other one with it. */
  private async claimTogether(batch: Delivery[]): Promise<(boolean | NotClaimed)[]> {
    const failed = new Map<number, NotClaimed>();
    const rows = await onEachDay(batch, notificationIdOf, async (day, items) => {
      try {
        return await onDay(this.claimOfDay(day, items), []);
      } catch (error) {
        failed.set(day, new NotClaimed(error));
        return [];
      }
    });
    const granted = generationsIn(rows);
    return batch.map(
      (delivery) =>
        failed.get(dayOfId(delivery.notificationId)) ??
        // Deleting grants it to one of several that ask for the same delivery together.
        granted.delete(generationOf(delivery)),
    );
  }

  private claimOfDay(day: number, items: Delivery[]): Promise<(KeyRow & { generation: number })[]> {
    return this.postgres.query(claimItems(day), {
      ...handedOut.bind(items),
      limit_ms: this.limitMs,
      process: this.heartbeat.processId,
    });
  }
}
