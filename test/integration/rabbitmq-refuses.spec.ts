import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { startPrivateServers, type PrivateServers } from '../../scripts/private-servers.mjs';
import { readSettings } from '../../src/config/settings.js';
import { examineRabbitMq } from '../../src/doctor/rabbitmq-findings.amqplib.js';
import { checkHealth, type HealthCheck } from '../../src/health/check-health.js';
import { queueTakesAll, rabbitMqWorks } from '../../src/health/part-checks.js';
import { lanes, type DeliveryQueue } from '../../src/queue/delivery-queue.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { LaneSilent } from '../../src/queue/lane-silent.js';
import { eventually } from '../support/eventually.js';
import { newDelivery } from '../support/new-delivery.js';

const chunk = { catalogueVersion: 1, queuedAt: 1, deliveries: [newDelivery({ body: Buffer.from('{}') })] };
const nothing = '^$';
const ours = '^heraut';
/** Through it Heraut publishes. */
const exchange = '^amq\\.default$';

describe('RabbitMQ that is reached, and refuses', () => {
  let servers: PrivateServers;
  let queue: RabbitMqDeliveryQueue;
  let url: string;
  let prefix: string;
  let count = 0;
  let logged: () => Record<string, unknown>[];
  /** Without those at level debug. */
  let reported: (event: string) => Record<string, unknown>[];

  beforeAll(async () => {
    servers = await startPrivateServers();
    await servers.rabbitmqctl('add_user', 'app', 'password');
    for (const vhost of ['open', 'closed', 'full']) await servers.rabbitmqctl('add_vhost', vhost);
    await servers.rabbitmqctl('set_permissions', '-p', 'full', 'app', '.*', '.*', '.*');
    await servers.rabbitmqctl('set_vhost_limits', '-p', 'full', '{"max-connections":0}');
    await permit(ours, exchange, ours);
  });
  afterAll(() => servers.stop());

  beforeEach(() => {
    Logger.overrideLogger(false);
    const spies = (['log', 'warn', 'error', 'debug'] as const).map((level) => vi.spyOn(Logger.prototype, level));
    const linesOf = (some: typeof spies) =>
      some.flatMap(({ mock }) => mock.calls.map(([line]) => line as Record<string, unknown>));
    logged = () => linesOf(spies);
    reported = (named) => linesOf(spies.slice(0, 3)).filter(({ event }) => event === named);
    prefix = `heraut-${++count}`;
    use('app:password', 'open');
  });
  afterEach(async () => {
    await queue.close();
    vi.restoreAllMocks();
  });

  function use(credentials: string, vhost: string): void {
    url = `amqp://${credentials}@${new URL(servers.rabbitmq.url).host}/${vhost}`;
    queue = new RabbitMqDeliveryQueue(url, prefix, 1000);
  }

  /** Nothing is said again after a minute, however long a test takes. */
  const stopClock = () => (queue = new RabbitMqDeliveryQueue(url, prefix, 1000, { now: () => 0 }));
  const permit = (configure: string, write: string, read: string) =>
    servers.rabbitmqctl('set_permissions', '-p', 'open', 'app', configure, write, read);
  const reasonOf = (check: HealthCheck) =>
    check.check().then(
      () => undefined,
      (error: Error) => error.message,
    );
  const unhealthy = () => reasonOf(rabbitMqWorks(queue));
  const healthOfWorker = async (of: DeliveryQueue = queue) =>
    (await checkHealth([rabbitMqWorks(of)], ['worker'], 30_000, () => {})).status;
  const doctor = (workers?: number) =>
    examineRabbitMq(readSettings({ AMQP_URL: url, QUEUE_PREFIX: prefix }), Promise.resolve(workers ?? 0));
  const roundTrip = () =>
    eventually(async () => (await queue.publish('due', chunk)) === 'confirmed', 'a chunk to be taken');

  it('because its user may not publish, is said not to work, with the reason, and is tried less and less often', async () => {
    stopClock();
    await permit(ours, nothing, ours);
    await queue.open();
    expect(await queue.publish('due', chunk)).toBe('refused');
    expect(queue.isAccepting).toBe(false);
    expect(await unhealthy()).toBe('its user has no write permission');
    await eventually(() => logged().some(({ retryInMs }) => retryInMs === 800), 'the fourth try');
    expect(logged()).not.toContainEqual({ event: 'rabbitmq.connected', purpose: 'publishing' });
    expect(reported('rabbitmq.disconnected')).toMatchObject([
      { purpose: 'publishing', failures: 1, error: { code: 403 }, advice: expect.stringContaining('set_permissions') },
    ]);
    expect(await unhealthy()).toBe('its user has no write permission');
    expect(await doctor()).toMatchObject([
      { name: 'rabbitmq', verdict: 'ok' },
      {
        name: 'rabbitmq-alarms',
        verdict: 'failed',
        found: expect.stringMatching(/no write permission.*access to exchange/),
        advice: expect.stringContaining('set_permissions'),
      },
      { name: 'rabbitmq-queues', verdict: 'failed', found: expect.stringContaining(`nobody reads ${prefix}.`) },
    ]);
    await permit(ours, exchange, ours);
    await roundTrip();
    expect(await doctor()).toMatchObject([{ verdict: 'ok' }, { verdict: 'ok' }, { name: 'rabbitmq-queues' }]);
  });

  it('is not said to have no reader while a worker is alive: RabbitMQ says so of a queue without a leader', async () => {
    await queue.open();
    expect((await doctor()).at(-1)).toMatchObject({ found: `nobody reads ${prefix}.fresh (0 messages)` });
    expect((await doctor(1)).at(-1)).toMatchObject({
      verdict: 'failed',
      advice: expect.stringContaining(`quorum_status -p open ${prefix}.fresh`),
    });
    await queue.publish('fresh', chunk);
    const found = async () => (await doctor(1)).at(-1)!.found;
    await eventually(async () => (await found()) === `nobody reads ${prefix}.fresh (1 messages)`, 'it to be counted');
  });

  it('is said to be read by another installation where its queues have more readers than workers are alive', async () => {
    await queue.open();
    for (const lane of [...lanes, ...lanes]) await queue.consume(lane, 1, () => Promise.resolve());
    const looked = async (workers: number) => (await doctor(workers)).at(-1)!;
    await eventually(async () => (await looked(0)).verdict === 'ok', 'the consumers to be counted');
    const found = `${prefix}.fresh has 2 readers, more than workers are alive (1), each of which is one`;
    await eventually(async () => (await looked(1)).found === found, 'both of them to be counted');
    expect(await looked(2)).toMatchObject({ verdict: 'ok' });
    expect(await looked(1)).toMatchObject({
      verdict: 'failed',
      advice: expect.stringContaining('QUEUE_PREFIX'),
    });
  });

  describe('of which one queue has no leader', () => {
    const slow = () => `'open_${prefix}.slow'`; // its process in RabbitMQ; one that is suspended answers as little
    const suspend = () => servers.rabbitmqctl('eval', `sys:suspend(${slow()}).`);
    const resume = () => servers.rabbitmqctl('eval', `sys:resume(${slow()}).`);
    let nowMs: number;
    let look: () => void;
    /** Seconds pass, of which the queue answers in none. */
    const wait = (seconds: number) => {
      for (let nr = 0; nr < seconds; nr++) {
        nowMs += 1000;
        look();
      }
    };

    beforeEach(async () => {
      nowMs = 0;
      queue = new RabbitMqDeliveryQueue(url, prefix, 1000, {
        isWorkerAlive: () => true,
        now: () => nowMs,
        everySecond: (callBack) => {
          look = callBack;
          return () => {};
        },
      });
      await queue.open();
      expect(await queue.publish('slow', chunk)).toBe('confirmed');
      await suspend();
    });
    afterEach(() => resume().catch(() => {})); // it may have been resumed

    it('is not said to hold nothing, but for how long it has not been reached', async () => {
      await expect(queue.depth('slow')).rejects.toMatchObject({ message: /slow seems to be empty/, forMs: 0 });
      nowMs += 60_000;
      await expect(queue.depth('slow')).rejects.toMatchObject({ forMs: 60_000 });
      await resume();
      await eventually(async () => (await queue.depth('slow').catch(() => 0)) === 1, 'it to be counted again');
    });

    it('refuses after a while what goes there, goes on with all else, and says so until it is confirmed', async () => {
      const unanswered = queue.publish('slow', chunk);
      expect(await queue.publish('due', chunk)).toBe('confirmed');
      wait(15);
      expect(await unanswered).toBe('refused');
      expect([queue.isAccepting, queue.accepts('due'), queue.accepts('slow')]).toEqual([true, true, false]);
      expect([await queue.publish('slow', chunk), await queue.publish('due', chunk)]).toEqual(['refused', 'confirmed']);
      expect(await unhealthy()).toBe('the queue of the lane slow confirms nothing');
      expect(await healthOfWorker()).toBe('degraded');
      expect(logged()).toContainEqual(
        expect.objectContaining({ event: 'queue.confirms-nothing', lane: 'slow', queue: `${prefix}.slow` }),
      );
      await resume();
      await eventually(() => queue.trouble === undefined, 'the late confirm');
      expect(logged()).toContainEqual(expect.objectContaining({ event: 'queue.confirms-again', lane: 'slow' }));
      expect(await queue.publish('slow', chunk)).toBe('confirmed');
      nowMs += 1000;
      expect(queue.accepts('slow')).toBe(true);
    });

    it('stops a worker only where no lane takes anything', async () => {
      const none = { trouble: new LaneSilent('slow'), accepts: () => false } as unknown as DeliveryQueue;
      expect(await healthOfWorker(none)).toBe('unavailable');
    });

    it('gets a connection anew where so much goes there that the broker would read nothing more of it, and is tried by one chunk at a time', async () => {
      const unanswered = Promise.all(Array.from({ length: 600 }, () => queue.publish('slow', chunk)));
      wait(15);
      expect(new Set(await unanswered)).toEqual(new Set(['refused']));
      await eventually(async () => (await queue.publish('due', chunk)) === 'confirmed', 'the other lanes to go on');
      const trial = queue.publish('slow', chunk);
      expect(await queue.publish('slow', chunk)).toBe('refused');
      wait(3);
      expect(await trial).toBe('refused');
      expect(await unhealthy()).toBe('the queue of the lane slow confirms nothing');
      expect(await queue.publish('due', chunk)).toBe('confirmed');
      await resume();
      wait(30);
      await eventually(async () => (await queue.publish('slow', chunk)) === 'confirmed', 'it to be tried');
      expect(await unhealthy()).toBeUndefined();
    });
  });

  it('because a message is too large for it, says how large they may be, and goes on with the others', async () => {
    // Before 4.0 it is read from the first, since then from the second.
    const limit = (bytes: string) =>
      servers.rabbitmqctl(
        'eval',
        `application:set_env(rabbit, max_message_size, ${bytes}), persistent_term:put(max_message_size, ${bytes}).`,
      );
    await limit('100');
    let nowMs = 0;
    queue = new RabbitMqDeliveryQueue(url, prefix, 1000, { now: () => nowMs, everySecond: () => () => {} });
    try {
      await queue.open();
      expect(await reasonOf(queueTakesAll(queue))).toBeUndefined();
      expect(await queue.publish('due', chunk)).toBe('refused');
      // With the connection gone, and when the next one is there.
      expect([queue.accepts('due'), await unhealthy()]).toEqual([false, undefined]);
      expect(await reasonOf(queueTakesAll(queue))).toBe('it refuses messages of this size');
      await eventually(async () => {
        await queue.publish('due', chunk);
        return logged().some(({ retryInMs }) => retryInMs === 800);
      }, 'the fourth connection to be lost');
      expect(reported('rabbitmq.disconnected')).toMatchObject([
        { failures: 1, error: { code: 406 }, advice: expect.stringContaining('max_message_size') },
      ]);
      expect(reported('rabbitmq.connected').filter(({ purpose }) => purpose === 'publishing')).toHaveLength(1);
      nowMs += 1000;
      await eventually(() => queue.accepts('due'), 'the next connection');
      expect([await unhealthy(), queueTakesAll(queue).stops]).toEqual([undefined, []]);
      expect(await reasonOf(queueTakesAll(queue))).toBe('it refuses messages of this size');
    } finally {
      await limit('134217728');
    }
    await roundTrip();
    nowMs += 60_000;
    expect(await reasonOf(queueTakesAll(queue))).toBeUndefined();
  });

  it('because its user may not publish any more, says so until it may again', async () => {
    await queue.open();
    await permit(ours, nothing, ours);
    await eventually(async () => (await queue.publish('due', chunk)) === 'refused', 'it to be refused');
    await eventually(async () => (await unhealthy()) === 'its user has no write permission', 'the reason');
    await permit(ours, exchange, ours);
    await roundTrip();
    expect([await unhealthy(), await reasonOf(queueTakesAll(queue))]).toEqual([undefined, undefined]);
  });

  it('because a policy allows fewer messages than it was made for, is said to be full', async () => {
    await servers.rabbitmqctl('set_policy', '-p', 'open', 'short', `^${prefix}\\.due$`, '{"max-length":3}');
    await queue.open();
    const room = () => queueTakesAll(queue).check();
    await room();
    await eventually(async () => (await queue.publish('due', chunk)) === 'refused', 'the queue to be full');
    await expect(room()).rejects.toThrow('the queue of the lane due is full');
    expect(await unhealthy()).toBeUndefined();
  });

  it('after a while on a connection that stays, is tried at once again when that is lost, and said anew', async () => {
    let nowMs = 0;
    let look = () => {};
    const everySecond = (callBack: () => void) => {
      look = callBack;
      return () => {};
    };
    queue = new RabbitMqDeliveryQueue(url, prefix, 1000, { now: () => nowMs, everySecond });
    await queue.open();
    const losses = () => reported('rabbitmq.disconnected').filter(({ purpose }) => purpose === 'publishing');
    const lose = async () => {
      const before = logged().filter(({ retryInMs }) => retryInMs).length;
      await servers.rabbitmqctl('close_all_user_connections', 'app', 'a test');
      await eventually(() => logged().filter(({ retryInMs }) => retryInMs).length >= before + 2, 'both to be lost');
      await eventually(() => queue.trouble === undefined, 'the next ones');
    };
    await lose();
    await lose();
    expect(losses()).toMatchObject([{ retryInMs: 100, failures: 1 }]);
    nowMs += 5000;
    look();
    expect(reported('rabbitmq.connected').filter(({ purpose }) => purpose === 'publishing')).toHaveLength(2);
    await lose();
    expect(losses()).toMatchObject([
      { retryInMs: 100, failures: 1 },
      { retryInMs: 100, failures: 1 },
    ]);
  });

  it.each([
    ['make queues', 'configure', [nothing, '.*', '.*'], ['consuming', 'publishing']],
    ['read them', 'read', ['.*', '.*', nothing], ['consuming']],
  ] as const)(
    'because its user may not %s, says so, and not with each try',
    async (_, permission, [configure, write, read], connections) => {
      stopClock();
      await permit(configure, write, read);
      await queue.open();
      await queue.consume('due', 1, () => Promise.resolve());
      const reason = `its user has no ${permission} permission`;
      await eventually(async () => (await unhealthy()) === reason, 'the reason');
      await eventually(() => logged().some(({ retryInMs }) => retryInMs === 800), 'the fourth try');
      const lines = reported('rabbitmq.disconnected');
      expect(lines.map(({ purpose }) => purpose).toSorted()).toEqual(connections);
      for (const { failures, advice } of lines)
        expect([failures, advice]).toEqual([1, expect.stringContaining('set_permissions')]);
      await permit(ours, exchange, ours);
      await roundTrip();
    },
  );

  it.each([
    ['is closed to its user', 'closed'],
    ['is not there', 'absent'],
    ['takes no more connections', 'full'],
  ])('because the virtual host %s, says so', async (_, vhost) => {
    use('app:password', vhost);
    await queue.open();
    expect(await unhealthy()).toBe(
      'its virtual host is not there, is closed to this user, or takes no more connections',
    );
    expect(logged().find(({ event }) => event === 'rabbitmq.disconnected')).toMatchObject({
      error: { message: expect.stringContaining('virtual host') },
    });
    expect((await doctor())[0]).toMatchObject({
      verdict: 'failed',
      found: expect.stringContaining('virtual host'),
      advice: expect.stringMatching(/list_permissions.*list_vhost_limits.*list_user_limits/),
    });
  });

  it('lets in a user whose name and password have characters outside ASCII', async () => {
    const [name, password] = ['zoë', 'wacht€woord/ß'];
    await servers.rabbitmqctl('add_user', name, password);
    await servers.rabbitmqctl('set_permissions', '-p', 'open', name, '.*', '.*', '.*');
    use(`${encodeURIComponent(name)}:${encodeURIComponent(password)}`, 'open');
    await queue.open();
    expect(queue.trouble).toBeUndefined();
  });

  it('because the password is wrong, says so', async () => {
    use('app:wrong', 'open');
    await queue.open();
    expect(await unhealthy()).toBe('it refuses the user or the password');
    expect((await doctor())[0]).toMatchObject({ advice: 'The user or the password in AMQP_URL is wrong.' });
  });

  it('because it has an alarm, is found blocked before anything is published', async () => {
    await servers.rabbitmqctl('set_vm_memory_high_watermark', '0.0001');
    await queue.open();
    expect(queue.isAccepting).toBe(false);
    expect(queue.trouble).toMatchObject({ message: 'blocked by an alarm' });
    await servers.rabbitmqctl('set_vm_memory_high_watermark', '0.6');
    await roundTrip();
    expect(queue.trouble).toBeUndefined();
  });
});
