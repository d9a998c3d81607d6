import { v7 as uuidv7 } from 'uuid';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { HeldTooLongRule } from '../../src/dispatching/held-too-long.service.js';
import { Releaser } from '../../src/dispatching/releaser.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import type { Delivery, HeldReason } from '../../src/ledger/delivery.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import type { Chunk } from '../../src/queue/chunk.js';
import { lanes } from '../../src/queue/delivery-queue.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { Enqueuer } from '../../src/queue/enqueuer.service.js';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { delivered, newNotification, TestLedger } from './ledger.js';
import { newDelivery } from './new-delivery.js';
import { plainCipher } from './secrets.js';
import type { Stack } from './stacks.js';
import { insertSubscription } from './insert-subscription.js';

/** The callback of each subscription that is given no other. */
export const url = 'http://receiver.example/hook';
export const { origin } = new URL(url);
export const running = new AbortController().signal;

interface Parts {
  test: TestLedger;
  catalogue: Catalogue;
  directory: SubscriptionDirectory;
  events: OperationalEvents;
  openEndpoints: OpenEndpoints;
  releaser: Releaser;
  heldTooLong: HeldTooLongRule;
}

/** A ledger with deliveries that are held, and what releases them. Its functions may be taken from it before `open`. */
export class HeldScene {
  /** Released, and not settled yet. */
  readonly enqueued: Delivery[] = [];
  /** Instead of the short pauses between looks. */
  onPause: () => Promise<void> = () => Promise.resolve();
  private readonly clock: Clock = { now: () => systemClock.now(), pause: () => this.onPause() };
  private parts!: Parts;
  private subscription!: string;

  constructor(private readonly stack: Stack) {}

  async open(): Promise<Parts> {
    const test = await TestLedger.on(this.stack);
    await test.heartbeat.onApplicationBootstrap();
    const catalogue = new Catalogue(test.postgres);
    const directory = new SubscriptionDirectory(catalogue, test.postgres, plainCipher);
    const events = new OperationalEvents();
    const openEndpoints = new OpenEndpoints(test.postgres, events);
    const parts = { test, catalogue, directory, events, openEndpoints };
    const releaser = this.releaserOf(parts, new InProcessDeliveryQueue(test.heartbeat.processId, 100_000));
    const { postgres } = test;
    const policies = new RetryPolicies(postgres, catalogue);
    const heldTooLong = new HeldTooLongRule(
      postgres,
      directory,
      openEndpoints,
      policies,
      test.ledgerClock,
      catalogue,
      this.clock,
    );
    return (this.parts = { ...parts, releaser, heldTooLong });
  }

  /** @returns the subscription, a new one for each test, that deliveries are of unless another is named */
  async clear(): Promise<string> {
    const { test, openEndpoints } = this.parts;
    await test.clear();
    await openEndpoints.refresh();
    this.enqueued.length = 0;
    // On a busy machine the next look would come due in no time at all, and be made by the same call.
    this.onPause = async () =>
      void (await test.sql(`UPDATE held_subscription SET look_at = now() + interval '5 minutes'`));
    return (this.subscription = await this.newSubscription());
  }

  async close(): Promise<void> {
    await this.parts.test.heartbeat.stop();
    await this.parts.test.close();
  }

  /** A releaser with a queue that keeps what it is given in `enqueued`. */
  newReleaser = (queue = new InProcessDeliveryQueue(this.parts.test.heartbeat.processId, 100_000)): Releaser =>
    this.releaserOf(this.parts, queue);

  newSubscription = async (columns: Record<string, unknown> = {}): Promise<string> => {
    const { test, catalogue } = this.parts;
    const id = await insertSubscription((...asked) => test.sql(...asked), {
      callback_url: columns.url ?? url,
      paused_at: columns.pausedAt ?? null,
      rate_per_second: columns.ratePerSecond ?? null,
      ordering: columns.ordering ?? 'none',
    });
    await catalogue.refresh();
    return id;
  };

  /**
   * Accepts that many notifications for the subscription, one after the other. @returns their deliveries, oldest first
   */
  accept = async (count: number, heldFor?: HeldReason, to = this.subscription): Promise<Delivery[]> => {
    const { test } = this.parts;
    const now = await test.now();
    const batch = Array.from({ length: count }, (_, nr) => ({
      ...newNotification(0),
      id: uuidv7({ msecs: now - count + nr }),
      subscriptionIds: [to],
      heldFor: new Map(heldFor ? [[to, heldFor]] : []),
    }));
    await test.acceptAll(batch);
    return batch.map(({ id }) => newDelivery({ notificationId: id, subscriptionId: to }));
  };

  lookIsDue = () => this.parts.test.sql('UPDATE held_subscription SET look_at = now()');

  look = async (): Promise<number> => {
    await this.lookIsDue();
    return this.parts.releaser.releaseHeld(running);
  };

  /** Of each open endpoint, where the one before it has ended. */
  probeIsDue = async (): Promise<void> => {
    const { test, openEndpoints } = this.parts;
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '1 s', probing_until = NULL");
    await openEndpoints.refresh();
  };

  settleAll = async (): Promise<void> => {
    const { settlements } = this.parts.test;
    await Promise.all(this.enqueued.splice(0).map((each) => settlements.settle(delivered(each))));
  };

  private releaserOf(parts: Omit<Parts, 'releaser' | 'heldTooLong'>, queue: InProcessDeliveryQueue): Releaser {
    const { test, catalogue, directory, openEndpoints } = parts;
    const keep = ({ chunk }: { chunk: Chunk }) => {
      this.enqueued.push(...chunk.deliveries);
      return Promise.resolve();
    };
    for (const lane of lanes) void queue.consume(lane, 1000, keep);
    return new Releaser(
      test.postgres,
      new Enqueuer(queue, test.postgres, test.heartbeat, test.ledgerClock),
      directory,
      openEndpoints,
      test.ledgerClock,
      catalogue,
      this.clock,
      test.config,
    );
  }
}
