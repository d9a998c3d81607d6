import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import type { Clock } from '../../src/infra/clock.js';
import type { Query } from '../../src/infra/postgres/postgres.js';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';
import type { DeliveryKey, DeliveryState } from '../../src/ledger/delivery.js';
import { createPartition, dateOf, dayOfId, partitionOf, partitionsBetween } from '../../src/ledger/partitions.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { sendAgain, type SentAgain } from '../../src/ledger/send-again.js';
import { rowsTogether } from '../../src/ledger/walk-deliveries.js';
import { BodyRetention } from '../../src/retention/body-retention.service.js';
import { RetentionReports } from '../../src/retention/retention-report.service.js';
import { insertDeliveries, insertNotifications } from './insert-deliveries.js';
import { TestLedger } from './ledger.js';

export const dayMs = 86_400_000;
export const mebibyte = 1024 * 1024;
/** Bytes of a large body. Postgres keeps such a text compressed: what counts is how long it is when it is read. */
export const large = 500 * 1024;
/** The signal of a process that does not stop. */
export const running = new AbortController().signal;

/** A ledger with days of the past, whose bodies are kept for a week, and with what retention does to them. */
export class TestRetention {
  private constructor(readonly test: TestLedger) {}

  static async open(environment: Record<string, string>): Promise<TestRetention> {
    const test = await TestLedger.open({ ...environment, BODY_RETENTION_DAYS: '7' });
    await makeMonthsAhead(test.postgres);
    return new TestRetention(test);
  }

  /** As a test finds it; the channel that `add` uses is there and has no days of its own. */
  async clear(): Promise<void> {
    await this.test.clear();
    await this.test.sql(
      'DELETE FROM retention_day; DELETE FROM kept_body; DELETE FROM erasure; DELETE FROM erased_delivery; DELETE FROM channel',
    );
    await this.setDays({ cases: null });
  }

  /** Of channels, those that are not there yet included: as another process commits it. */
  async setDays(days: Record<string, number | null>): Promise<void> {
    await this.test.sql(
      `WITH raised AS (UPDATE catalogue SET version = version + 1 RETURNING version)
       INSERT INTO channel (id, name, documentation_link, filters, body_retention_days, version)
       SELECT gen_random_uuid(), name, '', '{}', days, version FROM raised, unnest($1::text[], $2::int[]) AS c (name, days)
       ON CONFLICT (name) DO UPDATE SET body_retention_days = EXCLUDED.body_retention_days, version = EXCLUDED.version`,
      [Object.keys(days), Object.values(days)],
    );
  }

  eraseOld(
    stopping = running,
    clock: Partial<Clock> = { pause: () => Promise.resolve() },
    postgres = this.test.postgres,
    config = this.test.config,
  ): Promise<void> {
    return new BodyRetention(postgres, this.test.ledgerClock, clock as Clock, config).eraseOld(stopping);
  }

  /** Of these days; other tests leave theirs. */
  async report(...days: number[]) {
    const { days: all } = await new RetentionReports(this.test.postgres, this.test.config).read();
    return all.filter(({ day }) => days.some((at) => dateOf(Math.floor(at / dayMs)) === day));
  }

  /** @returns that time, in milliseconds, whose day has its partitions */
  async makeDay(daysAgo: number): Promise<number> {
    const at = Date.now() - daysAgo * dayMs;
    for (const partition of partitionsBetween(at, at)) {
      const [found] = await this.test.sql<{ yes: boolean }>('SELECT to_regclass($1) IS NOT NULL AS yes', [
        partition.name,
      ]);
      if (!found!.yes) await this.test.sql(createPartition(partition));
    }
    return at;
  }

  readonly sql = (text: string, values: unknown[]) => this.test.sql(text, values);

  /** With a delivery that a receiver has answered once with an error that repeats the body. */
  async add(at: number, state: DeliveryState, { channel = 'cases', body = '{"secret":1}' } = {}): Promise<DeliveryKey> {
    const key = { notificationId: uuidv7({ msecs: at }), subscriptionId: randomUUID() };
    await insertNotifications(this.sql, [key.notificationId], { channel, body });
    const columns = { next_at: `now() + interval '1 hour'`, last_status: '500', last_error: `'HTTP 500: ${body}'` };
    const deliveries = { notifications: [key.notificationId], subscriptionIds: [key.subscriptionId], state, columns };
    await insertDeliveries(this.sql, deliveries);
    await this.test.sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error, details)
       VALUES ($1, $2, 1, 1, now(), 1, 500, $3, $4)`,
      [
        key.notificationId,
        key.subscriptionId,
        `HTTP 500: ${body}`,
        JSON.stringify({ address: '192.0.2.1:80', headers: { 'x-echo': body }, body }),
      ],
    );
    return key;
  }

  /** For each notification that many deliveries, each with an attempt whose error repeats the body. */
  async addMany(notifications: string[], count: number, state: DeliveryState): Promise<void> {
    await insertNotifications(this.sql, notifications, { body: '{"secret":1}' });
    const subscriptionIds = Array.from({ length: count }, () => randomUUID());
    const columns = { attempts: '1', next_at: 'now()', last_status: '500', last_error: `'HTTP 500: secret'` };
    await insertDeliveries(this.sql, { notifications, subscriptionIds, state, columns });
    await this.test.sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
       SELECT notification_id, subscription_id, 1, 1, now(), 1, 500, last_error FROM delivery`,
    );
  }

  /** The call of what was sent again has ended, with an answer that repeats the body. */
  async fail({ notificationId }: DeliveryKey): Promise<void> {
    await this.test.sql(
      `UPDATE delivery SET state = 'failed', next_at = NULL, last_status = 500, last_error = 'HTTP 500: secret'
       WHERE notification_id = $1`,
      [notificationId],
    );
    await this.test.sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
       SELECT notification_id, subscription_id, 2, 2, now(), 1, 500, last_error FROM delivery WHERE notification_id = $1`,
      [notificationId],
    );
  }

  sendAgain(key: DeliveryKey, item: Partial<SentAgain> = {}, query?: Query): Promise<number> {
    const items = [{ ...key, isNew: false, heldFor: undefined, objectKey: null, ...item }];
    const send = (within: Query) =>
      sendAgain(within, dayOfId(key.notificationId), items, { states: ['failed'], replay: randomUUID() });
    return query ? send(query) : this.test.postgres.transaction(send);
  }

  async bodyOf({ notificationId }: DeliveryKey): Promise<string | null> {
    const [row] = await this.test.sql<{ body: string | null }>('SELECT body FROM notification WHERE id = $1', [
      notificationId,
    ]);
    return row!.body;
  }

  /** Everything that the ledger has of it. */
  async everythingOf({ notificationId }: DeliveryKey): Promise<string> {
    const tables = [
      ['notification', 'id'],
      ['delivery', 'notification_id'],
      ['attempt', 'notification_id'],
    ];
    const rows = await Promise.all(
      tables.map(([table, id]) =>
        this.test.sql(`SELECT row_to_json(t)::text AS row FROM ${table} t WHERE ${id} = $1`, [notificationId]),
      ),
    );
    return JSON.stringify(rows);
  }

  /** While no statement may write more rows of the deliveries and attempts of that day than one is to look at. */
  async withFewRowsAStatement(at: number, doIt: () => Promise<void>): Promise<void> {
    const tables = (['delivery', 'attempt'] as const).map((table) => partitionOf(table, Math.floor(at / dayMs)));
    await this.test.sql(`CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM written) > ${rowsTogether} THEN RAISE 'too many rows of % in one statement', TG_TABLE_NAME; END IF;
      RETURN NULL;
    END $$`);
    for (const table of tables)
      await this.test.sql(`CREATE TRIGGER few AFTER UPDATE ON ${table} REFERENCING NEW TABLE AS written
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`);
    try {
      await doIt();
    } finally {
      await this.test.sql('DROP FUNCTION refuse_many CASCADE');
    }
  }

  /** As `test.postgres`, but once, when answers have been erased and the text has not, `doIt` comes between. */
  withMeanwhile(doIt: () => Promise<unknown>): TestLedger['postgres'] {
    const { postgres } = this.test;
    let isDone = false;
    const query = async (statement: Statement, values?: Values) => {
      const rows = await postgres.query(statement, values);
      if (statement.name === 'erase-answers' && !isDone) {
        isDone = true;
        await doIt();
      }
      return rows;
    };
    return Object.create(postgres, { query: { value: query } }) as typeof postgres;
  }

  /** As `test.postgres`, but once, when an erasure has found notifications about its main object, `doIt` comes. */
  onceFound(doIt: () => Promise<unknown>): TestLedger['postgres'] {
    const hasFound = ({ name }: Statement, rows: unknown[]) =>
      name === 'notifications-about' && (rows as { ids: string[] }[]).some(({ ids }) => ids.length > 0);
    return this.onceCommitted(hasFound, doIt);
  }

  /** As `test.postgres`, but once, when an erasure has looked for the work of its next step, `doIt` comes. */
  onceLooked(doIt: () => Promise<unknown>): TestLedger['postgres'] {
    return this.onceCommitted(({ name }) => name === 'claim-erasure', doIt);
  }

  private onceCommitted(
    isIt: (statement: Statement, rows: unknown[]) => boolean,
    doIt: () => Promise<unknown>,
  ): TestLedger['postgres'] {
    const { postgres } = this.test;
    let [wasIt, isDone] = [false, false];
    const transaction = async <R>(work: (query: Query) => Promise<R>): Promise<R> => {
      const result = await postgres.transaction((query) =>
        work(async <Row>(statement: Statement, values?: Values) => {
          const rows = await query<Row>(statement, values);
          wasIt ||= isIt(statement, rows);
          return rows;
        }),
      );
      if (wasIt && !isDone) {
        isDone = true;
        await doIt();
      }
      return result;
    };
    return Object.create(postgres, { transaction: { value: transaction } }) as typeof postgres;
  }

  /** `doIt` comes between a step's look and its last transaction. */
  eraseOldWhile(doIt: () => Promise<unknown>): Promise<void> {
    return this.eraseOld(running, undefined, this.withMeanwhile(doIt));
  }
}

export const waysOfSendingAgain: [by: string, send: (on: TestRetention, key: DeliveryKey) => Promise<unknown>][] = [
  ['a retry', (on, key) => retryNow(on.test.postgres, key)],
  ['a replay', (on, key) => on.sendAgain(key)],
  ['a replay for one more subscription', (on, key) => on.sendAgain(key, { isNew: true, subscriptionId: randomUUID() })],
];
