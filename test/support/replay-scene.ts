import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { Selection } from '../../src/deliveries/selection.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import type { DeliveryState } from '../../src/ledger/delivery.js';
import { MeantCounter } from '../../src/replays/count-meant.service.js';
import type { Replay } from '../../src/replays/replay.js';
import { ReplayRunner } from '../../src/replays/replay-runner.service.js';
import { Replays, type Wanted } from '../../src/replays/replays.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { insertDeliveries, insertNotifications } from './insert-deliveries.js';
import { insertSubscription } from './insert-subscription.js';
import { TestLedger } from './ledger.js';
import { plainCipher } from './secrets.js';
import type { Stack } from './stacks.js';

Logger.overrideLogger(false);

export const hourMs = 3_600_000;
/** The signal of a process that does not stop. */
export const running = new AbortController().signal;

interface Parts {
  test: TestLedger;
  catalogue: Catalogue;
  directory: SubscriptionDirectory;
  openEndpoints: OpenEndpoints;
  counter: MeantCounter;
  replays: Replays;
  runner: ReplayRunner;
}

/** A delivery's row in the ledger. */
interface Row {
  state: DeliveryState;
  held_for: string | null;
  generation: number;
  replays: number;
  failures: number;
  last_status: number | null;
  is_ended: boolean;
  is_due: boolean | null;
  replay_id: string | null;
}

interface Columns {
  channels?: object[];
  ordering?: string;
  pausedAt?: Date;
  url?: string;
}

/** A ledger with dead letters, and what sends them again. Its functions may be taken from it before `open`. */
export class ReplayScene {
  private parts!: Parts;

  constructor(private readonly stack: Stack) {}

  async open(): Promise<Parts> {
    const test = await TestLedger.on(this.stack);
    await makeMonthsAhead(test.postgres);
    const catalogue = new Catalogue(test.postgres);
    const directory = new SubscriptionDirectory(catalogue, test.postgres, plainCipher);
    const openEndpoints = new OpenEndpoints(test.postgres, test.events);
    const counter = new MeantCounter(test.postgres);
    const replays = new Replays(test.postgres, counter, catalogue, directory);
    const parts = { test, catalogue, directory, openEndpoints, counter, replays };
    return (this.parts = { ...parts, runner: this.runnerOf(parts, test.postgres, 0.1) });
  }

  async clear(): Promise<void> {
    const { test, openEndpoints } = this.parts;
    await test.clear();
    await test.sql('DELETE FROM replay');
    await openEndpoints.refresh();
  }

  async close(): Promise<void> {
    await this.parts.test.close();
  }

  newRunner = (postgres = this.parts.test.postgres, statementSeconds = 0.1): ReplayRunner =>
    this.runnerOf(this.parts, postgres, statementSeconds);

  sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => this.parts.test.sql<R>(text, values);

  newSubscription = async ({ channels = [], ordering = 'none', pausedAt, url }: Columns = {}): Promise<string> => {
    const id = randomUUID();
    const callback_url = url ?? `http://${id}.example/`;
    const columns = { id, callback_url, channels: JSON.stringify(channels), paused_at: pausedAt ?? null, ordering };
    await insertSubscription(this.sql, columns);
    await this.parts.catalogue.refresh();
    return id;
  };

  /** Of a subscription, as another process commits it. */
  remove = async (id: string): Promise<void> => {
    await this.sql('UPDATE catalogue SET version = version + 1');
    await this.sql(
      'UPDATE subscription SET deleted_at = now(), version = (SELECT version FROM catalogue) WHERE id = $1',
      [id],
    );
  };

  /** Ids of notifications of a minute ago, in their order. */
  notifications = async (
    count: number,
    more: { channel?: string; body?: string; agoMs?: number } = {},
  ): Promise<string[]> => {
    const start = (await this.parts.test.now()) - (more.agoMs ?? hourMs / 60);
    const ids = Array.from({ length: count }, (_, nr) => uuidv7({ msecs: start + nr }));
    await insertNotifications(this.sql, ids, more);
    return ids;
  };

  dead = async (
    ids: string[],
    subscriptionId: string,
    columns: Record<string, string> = {},
    state: DeliveryState = 'failed',
  ): Promise<void> => {
    const failed = { ended_at: 'now()', failures: '8', last_status: '500', last_error: "'HTTP 500'", ...columns };
    await insertDeliveries(this.sql, { notifications: ids, subscriptionIds: [subscriptionId], state, columns: failed });
  };

  create = (selection: Selection, more: Partial<Wanted> = {}, by = this.parts.replays): Promise<Replay> =>
    by.create({
      kind: 'replay',
      selection,
      onlyMissed: true,
      ratePerSecond: null,
      startAt: undefined,
      stopAt: undefined,
      confirm: undefined,
      note: undefined,
      ...more,
    });

  run = (): Promise<number> => this.parts.runner.stepAll(running);
  /** As it is by now. */
  now = (replay: Replay): Promise<Replay> => this.parts.replays.get(replay.id);

  rowsOf = (subscriptionId: string): Promise<Row[]> =>
    this.sql<Row>(
      `SELECT state, held_for, generation, replays, failures, last_status, replay_id, ended_at IS NOT NULL AS is_ended,
         next_at <= now() + interval '1 s' AS is_due
       FROM delivery WHERE subscription_id = $1 ORDER BY notification_id`,
      [subscriptionId],
    );

  statesOf = async (subscriptionId: string): Promise<DeliveryState[]> =>
    (await this.rowsOf(subscriptionId)).map(({ state }) => state);

  private runnerOf(
    { test, catalogue, directory, openEndpoints }: Omit<Parts, 'runner'>,
    postgres: TestLedger['postgres'],
    statementSeconds: number,
  ): ReplayRunner {
    return new ReplayRunner(postgres, catalogue, directory, new HoldRule(openEndpoints), {
      settings: { ...test.config.settings, DATABASE_TIMEOUT: statementSeconds },
    });
  }
}
