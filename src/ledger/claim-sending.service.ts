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
  type Delivery,
  type KeyRow,
} from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, onEachDay, perDay } from './per-day.js';

/**
 * For the way from the claim to the call and from the answer to the ledger, before an outcome counts as never learnt.
 */
const slackMs = 15_000;

interface Asked extends Delivery {
  /** Of the call that is claimed. */
  timeoutMs: number;
}

interface Claim extends Asked {
  /** This process may have the claim already, and not have heard of it. */
  isUnheard: boolean;
}

export const claims = rowsOf<Claim>('item', {
  ...keyColumns,
  generation: ['int', (claim) => claim.generation],
  limit_ms: ['float8', (claim) => claim.timeoutMs + slackMs],
  is_unheard: ['bool', (claim) => claim.isUnheard],
});

/**
 * Committed before the call: Heraut never sends these again by itself. A claim whose answer was lost is given once
 * more, to the process that has it.
 */
export const claimItems = perDay(
  'claim-sending',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET state = 'sending', next_at = now() + item.limit_ms * interval '1 ms', process = $process
   FROM ${claims.from} WHERE ${sameDelivery('item')} AND d.generation = item.generation
     AND (d.state::text = 'queued' OR item.is_unheard AND d.state::text = 'sending' AND d.process = $process)
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
  /**
   * Generations that this process has been granted, until the ledger has what came of them: another message of one may
   * be here, and must not be granted it because its own statement failed. One whose outcome could not be written stays.
   */
  private readonly granted = new Set<string>();
  /** Those whose claim failed after the ledger may have committed it. */
  private readonly unheard = new Set<string>();

  private readonly batcher = new Batcher<Asked, boolean | NotClaimed>((batch) => this.claimTogether(batch), {
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
    for (const delivery of batch) if (!found.has(generationOf(delivery))) this.forget(delivery);
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

  /** The ledger no longer says that it is being sent, in the generation that was claimed. */
  forget(delivery: Delivery): void {
    this.granted.delete(generationOf(delivery));
  }

  /** A claim that was granted must be heard of, or its call comes late: a day that fails takes no other one with it. */
  private async claimTogether(batch: Asked[]): Promise<(boolean | NotClaimed)[]> {
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
    for (const generation of granted) this.granted.add(generation);
    return batch.map((delivery) => {
      const generation = generationOf(delivery);
      const notClaimed = failed.get(dayOfId(delivery.notificationId));
      if (!notClaimed) this.unheard.delete(generation);
      else if (!this.granted.has(generation)) this.unheard.add(generation);
      // Deleting grants it to one of several that ask for the same delivery together.
      return notClaimed ?? granted.delete(generation);
    });
  }

  private claimOfDay(day: number, items: Asked[]): Promise<(KeyRow & { generation: number })[]> {
    const bound = items.map((item) => ({ ...item, isUnheard: this.unheard.has(generationOf(item)) }));
    return this.postgres.query(claimItems(day), {
      ...claims.bind(bound),
      process: this.heartbeat.processId,
    });
  }
}
