import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from 'amqplib';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { topology } from '../../src/queue/topology.rabbitmq.js';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { liveMemory, measurable } from '../support/live-memory.js';
import { answer, arrival, Receiver } from '../support/receiver.js';
import { real, type PreparedStack } from '../support/stacks.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';

/** Fewer than are promised, because of the time it takes: TEST_WAITING_DELIVERIES=100000 is the whole promise. */
const waiting = Number(process.env.TEST_WAITING_DELIVERIES ?? 20_000);
const subscribers = 20;
const seldom = { everyMs: 50 };
/** Two UUIDs as text: the least memory of a process that remembered a delivery. */
const bytesOfKey = 72;

describe(`${waiting} deliveries that wait for a retry`, () => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let database: pg.Client;

  beforeAll(async () => {
    [prepared, receiver] = [await real.prepare(), await Receiver.start()];
    heraut = await Installation.start(prepared, measurable);
    database = new pg.Client({ connectionString: prepared.settings.DATABASE_URL });
    await database.connect();
  });

  afterAll(async () => {
    await database.end();
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it('are not in RabbitMQ nor in the worker’s memory; due together, they are all sent, each once', async () => {
    await heraut.setRetryPolicy({ maxRetries: 5, backoffFactor: 0.2 });
    const [crowded, lively] = [await heraut.createChannel(), await heraut.createChannel()];
    const subscriptions: string[] = [];
    for (let number = 0; number < subscribers; number++)
      subscriptions.push(await heraut.subscribe({ channel: crowded, url: `${receiver.url}/${number}` }));
    const other = await heraut.subscribe({ channel: lively, url: `${receiver.url}/lively` });
    await heraut.publishMany(lively, 500); // a process that has worked a while, to be compared with
    await eventually(() => new Set(receiver.arrivals).size === 500, 'the warming up', seldom);
    expect(receiver.arrivals).toHaveLength(500);

    const worker = [heraut.processes[1]!];
    const before = await liveMemory(worker);
    const expected = await letWait(crowded, subscriptions);
    // A delivery that fails and comes again shows that the dispatcher has looked at all that is due, more than once.
    receiver.next(answer(500));
    const { id } = await heraut.publish(lively);
    await heraut.becomes('delivered', id, other);
    expect(await messagesInQueues()).toBe(0);
    expect(receiver.arrivals).toHaveLength(502);
    expect((await liveMemory(worker)) - before).toBeLessThan(waiting * bytesOfKey);

    // It answers a quarter of them, and the rest only when the memory has been looked at.
    const toAnswer: (() => void)[] = [];
    let isLooked = false;
    receiver.always((request, response) => {
      const finish = () => answer(204)(request, response);
      if (receiver.arrivals.length < 502 + waiting / 4 || isLooked) finish();
      else toAnswer.push(finish);
    });
    await database.query("UPDATE delivery SET next_at = now() WHERE state = 'waiting'");
    await eventually(() => toAnswer.length > 0, 'the middle of them', seldom);
    // A few chunks, however many are due.
    expect((await liveMemory(worker)) - before).toBeLessThan(32 * 1024 * 1024);
    isLooked = true;
    for (const finish of toAnswer) finish();
    await eventually(() => receiver.arrivals.length >= 502 + waiting, 'all of them', seldom);
    await eventually(async () => (await countInState('delivered')) === waiting + 501, 'all to be delivered', seldom);
    expect(receiver.arrivals.slice(502).sort()).toEqual(expected.sort());
    expect(await messagesInQueues()).toBe(0);
  });

  /** Puts them into the ledger as they are after a first attempt that failed. @returns the arrivals to come */
  async function letWait(channel: string, subscriptions: string[]): Promise<string[]> {
    const ids = Array.from({ length: waiting / subscriptions.length }, () => uuidv7());
    const body = JSON.stringify({ kanaal: channel, resource: 'case', padding: '.'.repeat(500) });
    const sql = (text: string, values: unknown[]) => database.query(text, values);
    await insertNotifications(sql, ids, { channel, body });
    await insertDeliveries(sql, {
      notifications: ids,
      subscriptionIds: subscriptions,
      state: 'waiting',
      columns: {
        attempts: '1',
        failures: '1',
        next_at: "now() + interval '1 hour'",
        queued_at: 'now()',
        last_status: '503',
      },
    });
    return ids.flatMap((id) => subscriptions.map((_, number) => arrival(id, `/webhook/${number}`)));
  }

  async function countInState(state: string): Promise<number> {
    const { rows } = await database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM delivery WHERE state = $1',
      [state],
    );
    return rows[0]!.count;
  }

  async function messagesInQueues(): Promise<number> {
    const connection = await connect(prepared.settings.AMQP_URL!);
    try {
      const channel = await connection.createChannel();
      let messages = 0;
      for (const { name } of topology(prepared.settings.QUEUE_PREFIX!, 1))
        messages += (await channel.checkQueue(name)).messageCount;
      return messages;
    } finally {
      await connection.close();
    }
  }
});
