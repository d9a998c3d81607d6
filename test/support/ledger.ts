import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../../src/config/config.module.js';
import { readSettings } from '../../src/config/settings.js';
import { systemClock } from '../../src/infra/clock.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { SendingClaims } from '../../src/ledger/claim-sending.service.js';
import type { Delivery, DeliveryKey } from '../../src/ledger/delivery.js';
import { Holds } from '../../src/ledger/hold.service.js';
import { DeliveriesInHand } from '../../src/ledger/keep-in-hand.service.js';
import { accept } from '../../src/ledger/accept.js';
import type { Acceptance, Accepted, Destination, HandOut } from '../../src/ledger/acceptance.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { Settlements, type Attempt } from '../../src/ledger/settle.service.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { newDelivery } from './new-delivery.js';
import type { Stack } from './stacks.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';

Logger.overrideLogger(false); // it reports operational events

export const toBroker: HandOut = { state: 'queued', process: null };

/** A delivery's row in the ledger. */
export interface LedgerRow {
  state: string;
  generation: number;
  attempts: number;
  failures: number;
  replays: number;
  process: string | null;
  last_status: number | null;
  last_error: string | null;
  has_ended: boolean;
  /** Milliseconds until `next_at`; null where there is none. */
  due_in_ms: number | null;
}

/** The ledger as one process has it, with helpers for tests. */
export class TestLedger {
  readonly events = new OperationalEvents();
  readonly settlements: Settlements;
  readonly claims: SendingClaims;
  readonly inHand: DeliveriesInHand;
  readonly holds: Holds;
  private release = (): Promise<void> => Promise.resolve();

  private constructor(
    readonly postgres: Postgres,
    readonly config: Config,
    readonly partitions: PartitionKeeper,
    readonly ledgerClock: LedgerClock,
    readonly heartbeat: Heartbeat,
  ) {
    this.settlements = new Settlements(postgres, this.events);
    this.claims = new SendingClaims(postgres, heartbeat);
    this.inHand = new DeliveriesInHand(postgres, heartbeat, config);
    this.holds = new Holds(postgres);
  }

  static async open(environment: Record<string, string>): Promise<TestLedger> {
    const settings = readSettings(environment);
    const postgres = await Postgres.open(settings, []);
    await postgres.migrate();
    const config: Config = { settings };
    const partitions = new PartitionKeeper(postgres);
    await partitions.makeAhead();
    const ledgerClock = new LedgerClock(postgres, systemClock);
    const heartbeat = new Heartbeat(postgres, config, systemClock, ledgerClock);
    return new TestLedger(postgres, config, partitions, ledgerClock, heartbeat);
  }

  /** On a stack of its own, which goes with it. `open` where a test needs its settings besides. */
  static async on(stack: Stack): Promise<TestLedger> {
    const prepared = await stack.prepare();
    const test = await TestLedger.open(prepared.settings);
    test.release = () => prepared.release();
    return test;
  }

  async close(): Promise<void> {
    await this.postgres.close();
    await this.release();
  }

  async catalogueVersion(): Promise<number> {
    const [row] = await this.sql<{ version: string }>('SELECT version FROM catalogue');
    return Number(row!.version);
  }

  /** Milliseconds since 1970, by Postgres' clock. */
  async now(): Promise<number> {
    const [row] = await this.sql<{ ms: number }>('SELECT floor(extract(epoch FROM now()) * 1000)::float8 AS ms');
    return row!.ms;
  }

  /** Accepts these together, with the version the catalogue has unless another one is given. */
  async acceptAll(
    batch: readonly Accepted[],
    destination: Destination = toBroker,
    version?: number,
  ): Promise<Acceptance> {
    const matchedWith = version ?? (await this.catalogueVersion());
    return this.partitions.withPartitions(() => accept(this.postgres, matchedWith, batch, destination));
  }

  /** Accepts a notification for that many subscriptions. @returns its deliveries, as they are handed out */
  async accept(count = 1, destination: Destination = toBroker, body = '{}'): Promise<Delivery[]> {
    const item = newNotification(count, body);
    await this.acceptAll([item], destination);
    return item.subscriptionIds.map((subscriptionId) => newDelivery({ notificationId: item.id, subscriptionId }));
  }

  async row({ notificationId, subscriptionId }: DeliveryKey): Promise<LedgerRow | undefined> {
    const [row] = await this.sql<LedgerRow>(
      `SELECT state, generation, attempts, failures, replays, process, last_status, last_error, ended_at IS NOT NULL AS has_ended,
         (extract(epoch FROM next_at - now()) * 1000)::float8 AS due_in_ms
       FROM delivery WHERE notification_id = $1 AND subscription_id = $2`,
      [notificationId, subscriptionId],
    );
    return row;
  }

  async state(key: DeliveryKey): Promise<string | undefined> {
    return (await this.row(key))?.state;
  }

  async attempts({ notificationId, subscriptionId }: DeliveryKey): Promise<Record<string, unknown>[]> {
    return this.sql(
      `SELECT number, generation, started_at, duration_ms, connect_ms, first_byte_ms, status, error, details FROM attempt
       WHERE notification_id = $1 AND subscription_id = $2 ORDER BY number, started_at`,
      [notificationId, subscriptionId],
    );
  }

  /** Lets that much time pass for these deliveries: leases, waits and the time since they were queued. */
  async age(deliveries: DeliveryKey[], ms: number): Promise<void> {
    await this.sql(
      `UPDATE delivery d SET next_at = next_at - $3 * interval '1 ms', queued_at = queued_at - $3 * interval '1 ms'
       FROM unnest($1::uuid[], $2::uuid[]) AS item (notification_id, subscription_id)
       WHERE d.notification_id = item.notification_id AND d.subscription_id = item.subscription_id`,
      [deliveries.map((key) => key.notificationId), deliveries.map((key) => key.subscriptionId), ms],
    );
  }

  /** Puts these into the hand of a process. */
  keepInHand(deliveries: Delivery[], processId: string): Promise<void> {
    return this.inHandOf(processId).keep(deliveries);
  }

  inHandOf(processId: string): DeliveriesInHand {
    return new DeliveriesInHand(this.postgres, { processId } as Heartbeat, this.config);
  }

  /**
   * A process that counts as alive until it is told otherwise. `die`: it shows no more signs of life. That makes it
   * dead only if another process has been alive for long: `witness`.
   */
  async startProcess(): Promise<{ id: string; die: () => Promise<void>; witness: () => Promise<void> }> {
    const id = randomUUID();
    const add = (processId: string, since: string) =>
      this.sql(
        `INSERT INTO process (id, roles, expires_at, steady_since)
         VALUES ($1, '{worker}', now() + interval '1 hour', now() - $2::interval)`,
        [processId, since],
      );
    await add(id, '0');
    return {
      id,
      die: async () =>
        void (await this.sql(`UPDATE process SET expires_at = now() - interval '1 ms' WHERE id = $1`, [id])),
      witness: async () => void (await add(randomUUID(), '1 hour')),
    };
  }

  /**
   * Forgets all deliveries, and how far the workers were with them. Not TRUNCATE: with a partition a day that takes
   * seconds.
   */
  async clear(): Promise<void> {
    await this.sql(
      'DELETE FROM attempt; DELETE FROM delivery; DELETE FROM notification; DELETE FROM lane_progress; DELETE FROM queue_creation; DELETE FROM subscription_ending; DELETE FROM held_drop; DELETE FROM held_subscription; DELETE FROM endpoint; DELETE FROM turn; DELETE FROM in_line; DELETE FROM order_ending; DELETE FROM digest',
    );
  }

  async sql<R = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<R[]> {
    const result: unknown = await this.postgres.dataSource.query(text, values);
    return result as R[];
  }
}

/**
 * @param id needed in a virtual time that is ahead: the next ids of this process would be of that day, also in other
 * files, which have no partition of it
 */
export function newNotification(subscriptions = 1, body = '{}', id: string = uuidv7()): Accepted {
  return {
    id,
    channel: 'cases',
    publisher: 'tester',
    body,
    traceParent: null,
    subscriptionIds: Array.from({ length: subscriptions }, () => randomUUID()),
    heldFor: new Map(),
    inOrder: null,
    request: null,
    content: null,
    notBefore: null,
    keepsPlace: false,
    expiresAt: null,
  };
}

/** The HTTP call with that number, as a worker reports it. */
export function attemptNumber(number: number, parts: Partial<Attempt> = {}): Attempt {
  return {
    number,
    startedAt: 1_763_625_600_000 + number * 1000,
    durationMs: 12.4,
    connectMs: 3.2,
    firstByteMs: 11.6,
    status: 503,
    error: 'HTTP 503',
    details: null,
    ...parts,
  };
}

export const delivered = (delivery: Delivery, number = delivery.attempts + 1) => ({
  ...queued(delivery),
  state: 'delivered' as const,
  attempt: attemptNumber(number, { status: 204, error: null }),
});

export const retried = (delivery: Delivery, delayMs = 25_000, number = delivery.attempts + 1) => ({
  ...queued(delivery),
  state: 'waiting' as const,
  delayMs,
  attempt: attemptNumber(number),
});

export const ended = (delivery: Delivery, state: 'failed' | 'expired' | 'cancelled' = 'failed') => ({
  ...queued(delivery),
  state,
  attempt: state === 'failed' ? attemptNumber(delivery.attempts + 1) : null,
});

/** Which delivery a settlement is about, and that it was queued before. */
const queued = ({ notificationId, subscriptionId, generation }: Delivery) => ({
  notificationId,
  subscriptionId,
  generation,
  from: 'queued' as const,
});
