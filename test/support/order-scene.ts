import { randomUUID } from 'node:crypto';
import type { Accepted } from '../../src/ledger/acceptance.js';
import type { Delivery, DeliveryKey } from '../../src/ledger/delivery.js';
import { findTurnsLeft, passTurns } from '../../src/ledger/pass-turn.js';
import { newNotification, TestLedger, toBroker } from './ledger.js';
import { newDelivery } from './new-delivery.js';
import type { Stack } from './stacks.js';

export const hourMs = 3_600_000;

/**
 * A ledger with notifications about objects, for one subscription that keeps their order. Its functions may be taken
 * from it before `open`.
 */
export class OrderScene {
  private test!: TestLedger;
  private subscriptionId!: string;
  /** The key of each, by the name that a test gives it. */
  private objects: Record<string, string> = {};

  constructor(private readonly stack: Stack) {}

  async open(): Promise<TestLedger> {
    return (this.test = await TestLedger.on(this.stack));
  }

  /** @returns the subscription, a new one for each test */
  async clear(): Promise<string> {
    await this.test.clear();
    this.objects = {};
    return (this.subscriptionId = randomUUID());
  }

  async close(): Promise<void> {
    await this.test.close();
  }

  about = (object: string, parts: Partial<Accepted> = {}): Accepted => ({
    ...newNotification(),
    subscriptionIds: [this.subscriptionId],
    inOrder: {
      objectKey: (this.objects[object] ??= randomUUID()),
      subscriptionIds: new Set([this.subscriptionId]),
    },
    ...parts,
  });

  asDelivery = ({ id }: Accepted): Delivery => newDelivery({ notificationId: id, subscriptionId: this.subscriptionId });

  accept = async (object: string, parts: Partial<Accepted> = {}): Promise<Delivery> => {
    const item = this.about(object, parts);
    await this.test.acceptAll([item]);
    return this.asDelivery(item);
  };

  stateOf = async ({ notificationId }: DeliveryKey): Promise<string> => {
    const [row] = await this.test.sql<{ state: string; held_for: string | null }>(
      'SELECT state, held_for FROM delivery WHERE notification_id = $1 AND subscription_id = $2',
      [notificationId, this.subscriptionId],
    );
    return row!.state === 'held' ? `held for ${row!.held_for}` : row!.state;
  };

  statesOf = (...deliveries: DeliveryKey[]): Promise<string[]> => Promise.all(deliveries.map(this.stateOf));

  settle = (settlement: Parameters<TestLedger['settlements']['settle']>[0]) => this.test.settlements.settle(settlement);

  /** As a worker does. @returns the notifications that are handed out by it */
  pass = async (...deliveries: DeliveryKey[]): Promise<string[]> => {
    const { deliveries: next } = await passTurns(this.test.postgres, deliveries, toBroker);
    return next.map(({ notificationId }) => notificationId);
  };

  /** As the rule of the dispatcher does. */
  passLeft = async (): Promise<number> => {
    const left = await findTurnsLeft(this.test.postgres, 0, 0, 1000);
    await passTurns(this.test.postgres, left, { state: 'waiting', delayMs: 0 });
    return left.length;
  };

  turns = () => this.test.sql<{ notification_id: string }>('SELECT notification_id FROM turn');

  /** Whether a transaction waits for a row that another one has locked. */
  isLockAwaited = async (): Promise<boolean> =>
    (
      await this.test.sql(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`,
      )
    ).length > 0;
}
