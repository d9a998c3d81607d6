import { Injectable } from '@nestjs/common';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf } from '../infra/postgres/statement.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import {
  generationOf,
  generationsIn,
  handedOut,
  inHandBounds,
  keyColumns,
  keyOf,
  nameOf,
  notificationIdOf,
  sameDelivery,
  stillHandedOut,
  type Delivery,
  type KeyRow,
} from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, onEachDay, perDay } from './per-day.js';

/**
 * For the way from the claim to the call and from the answer to the ledger, before an outcome counts as never learnt.
 */
const slackMs = 15_000;

interface Claim extends Delivery {
  /** Of the call that is claimed. */
  timeoutMs: number;
}

export const claims = rowsOf<Claim>('item', {
  ...keyColumns,
  generation: ['int', (claim) => claim.generation],
  limit_ms: ['float8', (claim) => claim.timeoutMs + slackMs],
});

/** Committed before the call: Heraut never sends these again by itself. */
export const claimItems = perDay(
  'claim-sending',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET state = 'sending', next_at = now() + item.limit_ms * interval '1 ms', process = $process
   FROM ${claims.from} WHERE ${stillHandedOut}
   RETURNING d.notification_id, d.subscription_id, d.generation`,
);

export const earlierCalls = rowsOf<Delivery>('item', {
  ...keyColumns,
  // An operator who sends it again accepts that a call of before arrived.
  number_before: ['int', (delivery) => delivery.attempts - delivery.failures],
});

/**
 * Of calls that were to be repeated, those that have arrived, or may have: they were made while their subscription was
 * at least once.
 */
export const findEarlierCalls = perDay(
  'earlier-calls',
  (of) => `
    SELECT a.notification_id, a.subscription_id, bool_or(a.status IS NULL) AS is_unanswered
    FROM ${earlierCalls.from} JOIN ${of('attempt')} a ON a.notification_id = ANY (ARRAY[item.notification_id])
      AND a.subscription_id = item.subscription_id AND a.number > item.number_before
    WHERE a.status IS NOT NULL OR a.details ->> 'wasSent' = 'true'
    GROUP BY a.notification_id, a.subscription_id`,
);

/**
 * Of claimed deliveries, those whose call is still wanted: neither cancelled nor given up, and in the generation of the
 * claim.
 */
export const findStillClaimed = perDay(
  'still-claimed',
  (of) => `
    SELECT d.notification_id, d.subscription_id, d.generation
    FROM ${handedOut.from} JOIN ${of('delivery')} d
      ON ${sameDelivery('item')} AND d.state::text = 'sending' AND d.generation = item.generation`,
);

/** How a delivery ends of which an earlier call is no longer to be repeated. */
type EndOfEarlier = 'failed' | 'unknown';

/** The claims of a day could not be written, or not be heard of. */
class NotClaimed {
  constructor(readonly cause: unknown) {}
}

/** The right to send at-most-once deliveries, given once for each of their generations. */
@Injectable()
export class SendingClaims {
  private readonly batcher = new Batcher<Claim, boolean | NotClaimed>((batch) => this.claimTogether(batch), {
    maxItems: 256,
    lingerMs: 1,
    ...inHandBounds,
  });

  private readonly looks = new Batcher<Delivery, EndOfEarlier | undefined>((batch) => this.lookTogether(batch), {
    maxItems: 256,
    lingerMs: 1,
    ...inHandBounds,
  });

  private readonly questions = new Batcher<Delivery, boolean>((batch) => this.askTogether(batch), {
    maxItems: 256,
    lingerMs: 1,
    ...inHandBounds,
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
  ) {}

  /**
   * Of a delivery that this process has claimed. false: it was cancelled since, or its time was over and it is
   * `unknown`.
   */
  isStillClaimed(delivery: Delivery): Promise<boolean> {
    return this.questions.add(delivery);
  }

  private async askTogether(batch: Delivery[]): Promise<boolean[]> {
    const rows = await onEachDay(batch, notificationIdOf, (day, items) =>
      this.postgres.query<KeyRow & { generation: number }>(findStillClaimed(day), handedOut.bind(items)),
    );
    const found = generationsIn(rows);
    return batch.map((delivery) => found.has(generationOf(delivery)));
  }

  /**
   * @returns how the delivery ends instead of being claimed, because an earlier call was answered, or sent and not
   *   answered; undefined: none can have arrived, as far as the ledger knows
   */
  async endOfEarlier(delivery: Delivery): Promise<EndOfEarlier | undefined> {
    // A call of a generation that was handed out anew is kept, and not counted. After an operator's retry it may be of
    // the series before, which the ledger does not tell apart.
    return delivery.failures === 0 && delivery.replays > 0 ? undefined : this.looks.add(delivery);
  }

  private async lookTogether(batch: Delivery[]): Promise<(EndOfEarlier | undefined)[]> {
    const rows = await onEachDay(batch, notificationIdOf, (day, items) =>
      this.postgres.query<KeyRow & { is_unanswered: boolean }>(findEarlierCalls(day), earlierCalls.bind(items)),
    );
    const ends = new Map<string, EndOfEarlier>(
      rows.map((row) => [nameOf(keyOf(row)), row.is_unanswered ? 'unknown' : 'failed']),
    );
    return batch.map((delivery) => ends.get(nameOf(delivery)));
  }

  /**
   * Resolves after the commit.
   * @param timeoutMs of the call
   * @returns true at most once for each generation of a delivery
   */
  async claim(delivery: Delivery, timeoutMs: number): Promise<boolean> {
    const answer = await this.batcher.add({ ...delivery, timeoutMs });
    if (answer instanceof NotClaimed) throw answer.cause;
    return answer;
  }

  /** A claim that was granted must be heard of, or it is lost: a day that fails takes no other one with it. */
  private async claimTogether(batch: Claim[]): Promise<(boolean | NotClaimed)[]> {
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

  private claimOfDay(day: number, items: Claim[]): Promise<(KeyRow & { generation: number })[]> {
    return this.postgres.query(claimItems(day), {
      ...claims.bind(items),
      process: this.heartbeat.processId,
    });
  }
}
