import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Redis } from 'ioredis';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ConnectProxy, tunnel } from '../support/connect-proxy.js';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { answer, hang, Receiver, reset, type Behaviour } from '../support/receiver.js';
import type { HerautProcess } from '../support/spawn-heraut.js';
import { real, stacks, type PreparedStack } from '../support/stacks.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { signToken } from '../support/tokens.js';

/**
 * The deliveries of a killed process are free again soon, and a call that hangs is over soon, but not before a busy
 * machine has got to it.
 */
const quick = { TTL_LOCK_TIME_LIMIT_MS: '1000', NOTIFICATION_REQUESTS_TIMEOUT: '6', DELIVERY_LEASE_MS: '17100' };

describe.each(stacks)('at most once, on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let channel: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
    heraut = await Installation.start(prepared, { ...quick, AT_LEAST_ONCE_SENDING_CUSTOMERS: 'careful' });
    await heraut.setRetryPolicy({ maxRetries: 60, backoffFactor: 0.2 });
  });

  afterAll(async () => {
    await heraut.end();
    await prepared.release();
  });

  beforeEach(async () => {
    [receiver, channel] = [await Receiver.start(), await heraut.createChannel()];
  });

  afterEach(() => receiver.stop());

  const subscribe = (path = '') =>
    heraut.subscribe({ channel, url: receiver.url + path, deliveryGuarantee: 'at-most-once' });

  /** Calls that arrived for each notification. */
  const calls = (id: string) => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id).length;

  /** Publishes one more: when it has arrived, every call that was queued before it has been made. */
  async function expectNoMoreCalls(subscription: string, calledOnce: string[]): Promise<void> {
    receiver.always(answer(204));
    const { id } = await heraut.publish(channel);
    await heraut.becomes('delivered', id, subscription);
    expect(calledOnce.map(calls)).toEqual(calledOnce.map(() => 1));
  }

  /** The value of this counter in a process. */
  async function counted(process: HerautProcess, series: string): Promise<number> {
    const { body } = await process.call('GET', '/metrics');
    const line = (body as string).split('\n').find((each) => each.startsWith(`${series} `));
    return Number(line?.split(' ')[1] ?? 0);
  }

  it('is the guarantee of the subscription itself, or else of its owner', async () => {
    const body = { clientId: 'careful', label: 'careful', scopes: ['notificaties.consumeren'] };
    const created = await heraut.api.call('POST', '/admin/v1/applications', { body });
    const token = signToken({ clientId: 'careful', secret: (created.body as { secret: string }).secret });
    const url = (path: string) => `${receiver.url}/${path}`;
    const once = [
      await heraut.subscribe({ channel, url: url('once/owner') }),
      await heraut.subscribe({ channel, url: url('once/self'), token, deliveryGuarantee: 'at-most-once' }),
    ];
    const repeated = [
      await heraut.subscribe({ channel, url: url('repeated/owner'), token }),
      await heraut.subscribe({ channel, url: url('repeated/self'), deliveryGuarantee: 'at-least-once' }),
    ];
    const seen = new Set<string>();
    receiver.always((request, response) => {
      response.writeHead(seen.has(request.path) ? 204 : 500).end();
      seen.add(request.path);
    });
    const { id } = await heraut.publish(channel);
    for (const subscription of repeated) await heraut.becomes('delivered', id, subscription);
    for (const subscription of once) await heraut.becomes('failed', id, subscription);
    expect(receiver.notifications.map(({ path }) => path).toSorted()).toEqual([
      '/webhook/once/owner',
      '/webhook/once/self',
      '/webhook/repeated/owner',
      '/webhook/repeated/owner',
      '/webhook/repeated/self',
      '/webhook/repeated/self',
    ]);
  });

  it('delivers what is accepted, each once', async () => {
    const subscription = await subscribe();
    const published = await heraut.publishMany(channel, 50);
    await eventually(() => receiver.notifications.length >= 50, 'all calls');
    for (const { id } of published) await heraut.becomes('delivered', id, subscription);
    expect(new Set(receiver.notifications.map(({ headers }) => headers['webhook-id'])).size).toBe(50);
    expect(receiver.notifications).toHaveLength(50);
  });

  it.each([500, 503, 404, 410, 302])('fails at the answer %i, and is not sent again', async (status) => {
    const subscription = await subscribe();
    receiver.always(answer(status, { 'retry-after': '0' }));
    const { id } = await heraut.publish(channel);
    const failed = await heraut.becomes('failed', id, subscription);
    expect(failed).toMatchObject({ attemptCount: 1, lastStatus: status });
    expect(calls(id)).toBe(1);
  });

  it('is tried again while no connection can be made, because no byte was sent', async () => {
    const subscription = await subscribe();
    await receiver.stop();
    const { id } = await heraut.publish(channel);
    await eventually(async () => (await heraut.delivery(id, subscription)).attempts.length >= 2, 'two attempts');
    await receiver.start();
    const delivered = await heraut.becomes('delivered', id, subscription);
    expect(delivered.attempts[0]!.error).toContain('ECONNREFUSED');
    expect(calls(id)).toBe(1);
  });

  it.each<[string, Behaviour]>([
    ['hangs until the call is over', hang],
    ['cuts the connection instead of answering', reset],
  ])('is unknown where the receiver %s, and an operator may have it sent again', async (_, behaviour) => {
    const subscription = await subscribe();
    receiver.next(behaviour);
    const series = 'heraut_delivery_attempts_total{guarantee="at-most-once",outcome="unknown"}';
    const before = await counted(heraut.processes.at(-1)!, series);
    const { id } = await heraut.publish(channel);
    const unknown = await heraut.becomes('unknown', id, subscription);
    expect(unknown).toMatchObject({ attemptCount: 1, lastStatus: null });
    expect(await counted(heraut.processes.at(-1)!, series)).toBe(before + 1);
    await expectNoMoreCalls(subscription, [id]);
    const listed = await heraut.api.call('GET', `/admin/v1/deliveries?state=unknown&subscription=${subscription}`);
    expect(listed.body).toMatchObject({ deliveries: [{ notificationId: id, subscriptionId: subscription }] });
    await heraut.command('retry', id, subscription);
    const delivered = await heraut.becomes('delivered', id, subscription);
    expect(delivered.attempts).toHaveLength(2);
    expect(calls(id)).toBe(2);
  });

  it('is unknown, and not sent again, when the worker is killed in the middle of its calls', async () => {
    const subscription = await subscribe();
    receiver.always(hang);
    const ids = (await heraut.publishMany(channel, 5)).map(({ id }) => id);
    await eventually(() => receiver.notifications.length === ids.length, 'all calls');
    const worker = heraut.processes.at(-1)!;
    await worker.kill9();
    await worker.start('live');
    for (const id of ids) await heraut.becomes('unknown', id, subscription);
    const listed = await heraut.api.call('GET', `/admin/v1/deliveries?state=unknown&subscription=${subscription}`);
    const found = (listed.body as { deliveries: { notificationId: string }[] }).deliveries;
    expect(found.map(({ notificationId }) => notificationId).toSorted()).toEqual(ids.toSorted());
    // It counts them when it has heard of the commit, which others can see by then.
    const isCounted = async () => (await counted(worker, 'heraut_deliveries_unknown_total')) === ids.length;
    await eventually(isCounted, 'each to be counted');
    await expectNoMoreCalls(subscription, ids);
    await heraut.command('retry', ids[0]!, subscription);
    await heraut.becomes('delivered', ids[0]!, subscription);
    expect(ids.map(calls)).toEqual([2, 1, 1, 1, 1]);
  });
});

describe('at most once', () => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;

  beforeEach(async () => {
    [prepared, receiver] = [await real.prepare(), await Receiver.start()];
  });

  afterEach(async () => {
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it('holds although Redis forgets everything in the middle of the calls', async () => {
    // Nothing ends by itself while Redis is emptied, however long that takes.
    const unhurried = { NOTIFICATION_REQUESTS_TIMEOUT: '300', DELIVERY_LEASE_MS: '440000' };
    heraut = await Installation.start(prepared, unhurried);
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: receiver.url, deliveryGuarantee: 'at-most-once' });
    const open: ServerResponse[] = [];
    receiver.always((_, response) => open.push(response));
    const published = await heraut.publishMany(channel, 8);
    await eventually(() => open.length === 8, 'all calls');
    const redis = new Redis(prepared.settings.REDIS_URL!);
    await redis.flushdb();
    redis.disconnect();
    for (const response of open) response.writeHead(204).end();
    for (const { id } of published) await heraut.becomes('delivered', id, subscription);
    expect(receiver.notifications).toHaveLength(8);
  });

  it('holds although the worker is frozen between its claim and its call until the claim is over', async () => {
    const proxy = await TcpProxy.start(prepared.settings.DATABASE_URL!);
    try {
      heraut = await Installation.startWith(prepared, ['api,dispatcher'], quick);
      const throughProxy = await Installation.startWith(prepared, ['worker'], { ...quick, DATABASE_URL: proxy.url });
      const worker = throughProxy.api;
      heraut.processes.push(worker);
      const channel = await heraut.createChannel();
      const subscription = await heraut.subscribe({ channel, url: receiver.url, deliveryGuarantee: 'at-most-once' });
      // It sleeps before it can learn that the claim, which is on its way, was granted.
      proxy.onClientData = (bytes) => {
        if (!bytes.includes('claim-sending')) return;
        proxy.onClientData = undefined;
        process.kill(worker.pid!, 'SIGSTOP');
      };
      const { id } = await heraut.publish(channel);
      await heraut.becomes('sending', id, subscription);
      await heraut.becomes('unknown', id, subscription);
      expect(receiver.notifications).toHaveLength(0);
      process.kill(worker.pid!, 'SIGCONT');
      await heraut.becomes('delivered', id, subscription);
      const { id: next } = await heraut.publish(channel);
      await heraut.becomes('delivered', next, subscription);
      expect(receiver.notifications.map(({ headers }) => headers['webhook-id'])).toEqual([id, next]);
    } finally {
      await proxy.cut();
    }
  });

  it('sends nothing late in order where the worker was frozen while its call was being connected', async () => {
    const proxy = await ConnectProxy.start();
    try {
      const throughProxy = { ...quick, EGRESS_PROXY_URL: proxy.url };
      heraut = await Installation.startWith(prepared, ['api,dispatcher', 'worker'], throughProxy);
      const worker = heraut.processes[1]!;
      const channel = await heraut.createChannel();
      // To the proxy every address is this machine; loopback would be called without it.
      const url = `http://192.0.2.1:${new URL(receiver.url).port}/`;
      const subscription = await heraut.subscribe({ channel, url, deliveryGuarantee: 'at-most-once' });
      const path = `/admin/v1/subscriptions/${subscription}`;
      expect((await heraut.api.call('PATCH', path, { body: { ordering: 'per-object' } })).status).toBe(200);
      let first: Socket | undefined;
      proxy.behaviour = (socket, authority) => {
        first = socket;
        process.kill(worker.pid!, 'SIGSTOP');
        tunnel(socket, authority);
      };
      const { id } = await heraut.publish(channel);
      await heraut.becomes('unknown', id, subscription);
      proxy.behaviour = tunnel;
      process.kill(worker.pid!, 'SIGCONT');
      // About the same object.
      const { id: next } = await heraut.publish(channel);
      await heraut.becomes('delivered', next, subscription);
      await eventually(() => first!.closed, 'the end of the first connection');
      expect(receiver.notifications.map(({ headers }) => headers['webhook-id'])).toEqual([next]);
      expect(await heraut.delivery(id, subscription)).toMatchObject({ state: 'unknown', attempts: [] });
    } finally {
      await proxy.stop();
    }
  });
});
