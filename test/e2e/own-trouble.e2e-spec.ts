import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { startPrivateServers, type PrivateServers } from '../../scripts/private-servers.mjs';
import { queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { Installation, type Published } from '../support/installation.js';
import { answer, arrival, Receiver } from '../support/receiver.js';
import { realOn, type PreparedStack } from '../support/stacks.js';

describe('our own trouble', () => {
  const names = ['a', 'b', 'c'];
  const quickPolicy = { maxRetries: 3, backoffFactor: 1 };
  let servers: PrivateServers;
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let channel: string;
  let subscriptions: string[];
  let loggedBefore: number;

  // One installation for all: each trouble comes to processes that have been through the others.
  beforeAll(async () => {
    servers = await startPrivateServers();
    const { postgres, rabbitmq, redis } = servers;
    const stack = realOn({ databaseUrl: () => postgres.url, amqpUrl: () => rabbitmq.url, redisUrl: () => redis.url });
    prepared = await stack.prepare();
    // Calls are held open here while a server is stopped, which may take longer than they last by default.
    heraut = await Installation.start(prepared, { NOTIFICATION_REQUESTS_TIMEOUT: '45' });
    await heraut.setRetryPolicy(quickPolicy);
  });

  afterAll(async () => {
    await heraut.end();
    await prepared.release();
    await servers.stop();
  });

  beforeEach(async () => {
    receiver = await Receiver.start();
    channel = await eventually(() => heraut.createChannel(), 'the trouble before to be over');
    subscriptions = [];
    for (const name of names) subscriptions.push(await heraut.subscribe({ channel, url: `${receiver.url}/${name}` }));
    loggedBefore = heraut.processes[1]!.logs.length;
  });

  afterEach(async () => {
    for (const subscription of subscriptions) await heraut.unsubscribe(subscription);
    await receiver.stop();
  });

  it('is answered with 503 while Postgres is away, leaves nothing half-written, and is over when Postgres is back', async () => {
    await expectOnce([await heraut.publish(channel)]);
    await servers.postgres.stop();
    for (let tries = 0; tries < 3; tries++) {
      const refused = await heraut.tryToPublish(channel, { resource: 'refused' });
      expect(refused.status).toBe(503);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused.headers.get('content-type')).toContain('application/problem+json');
      expect(refused.headers.get('notification-id')).toBeNull();
    }
    expect((await fetch(`${heraut.api.url}/health/live`)).status).toBe(200);
    await servers.postgres.start();
    const published = await publishWhenItIsBack();
    await arrivesEverywhere(published);
    expect(receiver.notifications.filter(({ text }) => text.includes('refused'))).toEqual([]);
    expect(await query("SELECT FROM notification WHERE body LIKE '%refused%'")).toEqual([]);
  });

  it('never splits a notification from its deliveries, though Postgres is killed while many are published', async () => {
    const accepted: Published[] = [];
    let refused = 0;
    let isOver = false;
    const publisher = async () => {
      while (!isOver) {
        const { status, headers, text } = await heraut.tryToPublish(channel);
        if (status === 201) accepted.push({ id: headers.get('notification-id')!, text });
        else if (status === 503) refused++;
        else throw new Error(`Answered ${status}: ${text}`);
        if (status === 503) await pause(50);
      }
    };
    const publishers = Array.from({ length: 8 }, publisher);
    await eventually(() => accepted.length > 50, 'some to be accepted');
    await servers.postgres.kill9();
    await eventually(() => refused > 8, 'some to be refused');
    const acceptedBefore = accepted.length;
    await servers.postgres.start();
    await eventually(() => accepted.length > acceptedBefore + 50, 'some more to be accepted');
    isOver = true;
    await Promise.all(publishers);

    await arrivesEverywhere(accepted);
    const counts =
      await query(`SELECT count(d)::int AS deliveries FROM notification n LEFT JOIN delivery d ON d.notification_id = n.id
         WHERE n.channel = '${channel}' GROUP BY n.id`);
    expect(new Set(counts.map(({ deliveries }) => deliveries))).toEqual(new Set([names.length]));
    expect(await query('SELECT id FROM notification EXCEPT SELECT notification_id FROM delivery')).toEqual([]);
  });

  it('lets a worker keep its results while Postgres is away: deliveries that arrived are not sent again', async () => {
    const toAnswer: (() => void)[] = [];
    receiver.always((request, response) => void toAnswer.push(() => answer(204)(request, response)));
    const published = await heraut.publish(channel);
    await eventually(() => toAnswer.length === names.length, 'the calls');
    await servers.postgres.stop();
    for (const finish of toAnswer) finish();
    await loggedByWorkers('delivery.postponed');
    await servers.postgres.start();
    for (const subscription of subscriptions) {
      const delivered = await heraut.becomes('delivered', published.id, subscription);
      expect(delivered.attempts).toHaveLength(1);
    }
    expect(receiver.notifications).toHaveLength(names.length);
  });

  it('does not stop publishing while RabbitMQ is away; the notifications arrive when it is back', async () => {
    await expectOnce([await heraut.publish(channel)]);
    await servers.rabbitmq.stop();
    const published = await heraut.publishMany(channel, 40);
    await servers.rabbitmq.start();
    await arrivesEverywhere(published);
    await expectOnce([await heraut.publish(channel)]);
  });

  it('loses no delivery that was in RabbitMQ when that is emptied', async () => {
    await heraut.processes[1]!.stop(); // so that it stays there
    const published = await heraut.publishMany(channel, 40);
    await servers.rabbitmq.wipe();
    await heraut.processes[1]!.start('live');
    await arrivesEverywhere(published); // long before the leases end, which are minutes
    await expectOnce(published);
  });

  it('pauses deliveries while Redis is away, and costs them no attempt', async () => {
    await expectOnce([await heraut.publish(channel)]);
    const before = receiver.notifications.length;
    await servers.redis.stop();
    const published = await heraut.publishMany(channel, 10);
    await loggedByWorkers('delivery.postponed');
    expect(receiver.notifications).toHaveLength(before);
    await servers.redis.start();
    await arrivesEverywhere(published);
    await expectOnce(published);
    const attempts = receiver.notifications.map(({ headers }) => headers['webhook-attempt']);
    expect(new Set(attempts)).toEqual(new Set(['1']));
  });

  it('repeats on schedule although Redis is emptied in the middle of the wait', async () => {
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 15 }); // each is looked up while it waits
    receiver.next(answer(500), answer(500), answer(500));
    const published = await heraut.publish(channel);
    for (const subscription of subscriptions) await heraut.becomes('waiting', published.id, subscription);
    await servers.redis.wipe();
    for (const subscription of subscriptions) {
      const { attemptCount } = await heraut.becomes('delivered', published.id, subscription);
      expect(attemptCount).toBe(2);
    }
    expect(receiver.notifications).toHaveLength(2 * names.length);
    await heraut.setRetryPolicy(quickPolicy);
  });

  async function publishWhenItIsBack(): Promise<Published[]> {
    const answered = await eventually(async () => {
      const { status, headers, text } = await heraut.tryToPublish(channel);
      return status === 201 && { id: headers.get('notification-id')!, text };
    }, 'a 201');
    return [answered];
  }

  /** At least once. */
  async function arrivesEverywhere(published: Published[]): Promise<void> {
    const expected = keysFor(published);
    await eventually(() => {
      const arrived = new Set(receiver.arrivals);
      return expected.every((key) => arrived.has(key));
    }, 'every one at every subscription');
  }

  async function expectOnce(published: Published[]): Promise<void> {
    await arrivesEverywhere(published);
    const expected = keysFor(published);
    const wanted = new Set(expected);
    expect(receiver.arrivals.filter((key) => wanted.has(key)).sort()).toEqual(expected.sort());
  }

  const keysFor = (published: Published[]) =>
    published.flatMap(({ id }) => names.map((name) => arrival(id, `/webhook/${name}`)));

  function loggedByWorkers(event: string): Promise<unknown> {
    const worker = heraut.processes[1]!;
    return eventually(
      () => worker.logs.slice(loggedBefore).some((logged) => logged.event === event),
      `the event ${event}`,
    );
  }

  const query = (text: string) => queryOnce(prepared.settings.DATABASE_URL, text);
});
