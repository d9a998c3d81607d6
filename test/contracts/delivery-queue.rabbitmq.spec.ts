import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { connect } from 'amqplib';
import type { Chunk } from '../../src/queue/chunk.js';
import type { Taken } from '../../src/queue/delivery-queue.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { newDelivery } from '../support/new-delivery.js';

let counter = 0;

function chunk(): Chunk {
  return { catalogueVersion: 1, queuedAt: ++counter, deliveries: [newDelivery({ body: Buffer.from('{}') })] };
}

/** A method of class `connection` on the wire (AMQP 0-9-1 §2.3.5): a broker with an alarm sends it. */
function connectionMethod(method: number, ...values: Buffer[]): Buffer {
  const payload = Buffer.concat([Buffer.from([0, 10, 0, method]), ...values]);
  const head = Buffer.alloc(7);
  head.writeUInt8(1, 0);
  head.writeUInt32BE(payload.length, 3);
  return Buffer.concat([head, payload, Buffer.from([0xce])]);
}
const blocked = connectionMethod(60, Buffer.from('\x06memory'));
const unblocked = connectionMethod(61);
/** With 320 (`connection-forced`), and no method that is to blame. */
const closedByOperator = connectionMethod(50, Buffer.from('\x01\x40\x06reason\0\0\0\0', 'latin1'));
/** Class `channel`: `open` is the first thing said on a connection that is there, `close` the last on a channel. */
const channelClose = Buffer.from([0, 20, 0, 40]);
const channelOpen = Buffer.from([0, 20, 0, 10]);

describe('the RabbitMQ queue', () => {
  let queues: TestQueues;
  let proxy: TcpProxy;
  let queue: RabbitMqDeliveryQueue;
  let created: number;
  let lines: () => Record<string, unknown>[];
  let logged: (event: string) => number;

  beforeAll(() => Logger.overrideLogger(false));

  beforeEach(async () => {
    queues = createQueuePrefix();
    proxy = await TcpProxy.start(queues.url);
    queue = newQueue();
    const spies = (['log', 'warn', 'error', 'debug'] as const).map((level) => vi.spyOn(Logger.prototype, level));
    lines = () => spies.flatMap(({ mock }) => mock.calls.map(([line]) => line as Record<string, unknown>));
    logged = (event) => lines().filter((line) => line['event'] === event).length;
  });
  afterEach(async () => {
    await proxy.restore();
    await queue.close();
    await proxy.cut();
    await queues.remove();
    vi.restoreAllMocks();
  });

  function newQueue(): RabbitMqDeliveryQueue {
    created = 0;
    const fresh = new RabbitMqDeliveryQueue(proxy.url, queues.prefix, 1000);
    fresh.onCreated(() => created++);
    return fresh;
  }

  async function consume(prefetch = 10): Promise<Taken[]> {
    const taken: Taken[] = [];
    await queue.consume('due', prefetch, (each) => Promise.resolve(void taken.push(each)));
    return taken;
  }

  const isReady = () => eventually(() => queue.isAccepting && queue.trouble === undefined, 'the queue to be ready');

  /** Proves that everything works again: a published chunk arrives. */
  async function roundTrip(taken: Taken[]): Promise<void> {
    const published = chunk();
    await eventually(async () => (await queue.publish('due', published)) === 'confirmed', 'a chunk to be taken');
    await eventually(() => taken.some((each) => each.chunk.queuedAt === published.queuedAt), 'a chunk to arrive');
  }

  it('says once that its queues were created, when they were', async () => {
    await queue.open();
    expect(created).toBeGreaterThan(0);
    await queue.close();
    queue = newQueue();
    await queue.open();
    expect(created).toBe(0);
  });

  it('keeps what it confirmed for another process', async () => {
    await queue.open();
    const published = chunk();
    expect(await queue.publish('due', published)).toBe('confirmed');
    await queue.close();
    queue = newQueue();
    await queue.open();
    const taken = await consume();
    await eventually(() => taken.length === 1);
    expect(taken[0]!.chunk).toEqual(published);
  });

  it('refuses unconfirmed chunks when the connection is lost, and all others until it is back', async () => {
    await queue.open();
    proxy.holdUp();
    const outcomes = Promise.all([queue.publish('due', chunk()), queue.publish('slow', chunk())]);
    await proxy.cut();
    expect(await outcomes).toEqual(['refused', 'refused']);
    expect(queue.isAccepting).toBe(false);
    expect(queue.trouble).toBeDefined();
    expect(await queue.publish('due', chunk())).toBe('refused');
    await expect(queue.depth('due')).rejects.toThrow(/not connected|Channel ended/);
    await proxy.restore();
    await isReady();
    await roundTrip(await consume());
  });

  it('comes back however often the connection is lost', async () => {
    await queue.open();
    const taken = await consume();
    for (let times = 0; times < 4; times++) {
      await roundTrip(taken);
      await proxy.cut();
      await eventually(() => !queue.isAccepting);
      await proxy.restore();
    }
    await roundTrip(taken);
    await eventually(() => proxy.openConnections === 2, 'one connection for each purpose');
  });

  it('says of each connection once that it is lost, however often it is tried again', async () => {
    await queue.open();
    await isReady();
    await proxy.cut();
    await eventually(() => logged('rabbitmq.disconnected') >= 10, 'ten tries');
    const said = vi.mocked(Logger.prototype.warn).mock.calls.map(([line]) => line as Record<string, unknown>);
    expect(said.map(({ event, failures }) => [event, failures])).toEqual([
      ['rabbitmq.disconnected', 1],
      ['rabbitmq.disconnected', 1],
    ]);
    expect(said.map(({ purpose }) => purpose).toSorted()).toEqual(['consuming', 'publishing']);
    await proxy.restore();
    await isReady();
  });

  it('starts without a broker, and works when there is one', async () => {
    await proxy.cut();
    await queue.open();
    expect(queue.isAccepting).toBe(false);
    expect(queue.trouble).toMatchObject({ code: 'ECONNREFUSED' });
    const taken = await consume();
    await proxy.restore();
    await roundTrip(taken);
    expect(queue.trouble).toBeUndefined();
  });

  it('tells why it lost a connection, and not why an earlier one', async () => {
    await proxy.cut();
    await queue.open();
    await proxy.restore();
    await isReady();
    const before = logged('rabbitmq.disconnected');
    proxy.say(closedByOperator);
    await eventually(() => logged('rabbitmq.disconnected') === before + 2, 'both to be closed');
    const errors = lines().filter(({ event }) => event === 'rabbitmq.disconnected');
    const operator = { error: { code: 320, message: expect.stringContaining('reason') } };
    expect(errors.slice(-2)).toMatchObject([operator, operator]);
    await roundTrip(await consume());
  });

  it('replaces a connection that is lost while it is being set up by one, not two', async () => {
    await proxy.cut();
    await queue.open();
    const taken = await consume();
    const before = logged('rabbitmq.disconnected');
    let losses = 0;
    proxy.onClientData = (bytes) => {
      if (losses < 2 && bytes.includes(channelOpen)) {
        losses++;
        void proxy.cut().then(() => proxy.restore());
      }
    };
    await proxy.restore();
    await isReady();
    await roundTrip(taken);
    expect(losses).toBe(2);
    // Each loss takes both connections, and each connection tries again once for each.
    expect(logged('rabbitmq.disconnected') - before).toBeLessThanOrEqual(2 * losses);
    await eventually(() => proxy.openConnections === 2, 'one connection for each purpose');
  });

  it('leaves no connection behind when it is closed while it connects', async () => {
    await proxy.cut();
    await queue.open(); // fails, and will try again
    await proxy.restore();
    proxy.holdUp();
    await eventually(() => proxy.openConnections === 2, 'both to connect');
    const closed = queue.close();
    proxy.letGo();
    await closed;
    await eventually(() => proxy.openConnections === 0, 'no connection to be left');
  });

  it('gives out again the chunks in hand when the connection was lost, and survives their late end', async () => {
    await queue.open();
    const taken: Taken[] = [];
    const ends: (() => void)[] = [];
    await queue.consume('due', 10, (each) => {
      taken.push(each);
      return new Promise((resolve) => ends.push(resolve));
    });
    const published = chunk();
    await queue.publish('due', published);
    await eventually(() => taken.length === 1);
    await proxy.cut();
    await eventually(() => !queue.isAccepting);
    await proxy.restore();
    await eventually(() => taken.length === 2, 'the chunk to come again');
    expect(taken[1]).toEqual({ chunk: published, lane: 'due', isRedelivered: true });
    ends[0]!(); // of the connection that is gone
    ends[1]!();
    await eventually(async () => (await queue.depth('due')) === 0);
    expect(logged('queue.answer-failed')).toBe(0);
    await queue.close();
    queue = newQueue();
    await queue.open();
    await roundTrip(await consume());
    expect(taken).toHaveLength(2);
  });

  it('creates its queues again, and says so, when they are deleted under it', async () => {
    await queue.open();
    const taken = await consume();
    await roundTrip(taken);
    created = 0;
    await queues.remove();
    await eventually(() => created > 0, 'the queues to be created again');
    await roundTrip(taken);
  });

  it('creates its queues again when the broker comes back empty', async () => {
    await queue.open();
    const taken = await consume();
    await proxy.cut();
    await queues.remove();
    created = 0;
    await proxy.restore();
    await roundTrip(taken);
    expect(created).toBeGreaterThan(0);
  });

  it('refuses new and unconfirmed chunks while the broker has an alarm, and accepts after it', async () => {
    await queue.open();
    const taken = await consume();
    await roundTrip(taken);
    proxy.holdUp();
    const unconfirmed = queue.publish('due', chunk());
    proxy.say(blocked);
    expect(await unconfirmed).toBe('refused');
    expect(queue.isAccepting).toBe(false);
    expect(queue.trouble).toMatchObject({ message: 'blocked by an alarm' });
    expect(await queue.publish('due', chunk())).toBe('refused');
    expect(logged('rabbitmq.blocked')).toBe(1);
    proxy.say(unblocked);
    proxy.letGo();
    await isReady();
    await roundTrip(taken);
  });

  it('forgets an alarm together with the connection that told it', async () => {
    await queue.open();
    proxy.say(blocked);
    await eventually(() => !queue.isAccepting);
    await proxy.cut();
    await proxy.restore();
    await isReady();
    await roundTrip(await consume());
  });

  it('drops and reports an unreadable message, and goes on', async () => {
    await queue.open();
    const taken = await consume(1);
    const connection = await connect(queues.url);
    const channel = await connection.createConfirmChannel();
    for (const content of ['hello', '[1,2,3]', '']) channel.sendToQueue(`${queues.prefix}.due`, Buffer.from(content));
    await channel.waitForConfirms();
    await connection.close();
    await roundTrip(taken);
    expect(taken).toHaveLength(1);
    expect(logged('queue.chunk-unreadable')).toBe(3);
    expect(await queue.depth('due')).toBe(0);
  });

  it('closes when the connection is lost while it does so', async () => {
    await queue.open();
    await roundTrip(await consume());
    proxy.holdUp();
    const closed = queue.close();
    await proxy.cut();
    await closed;
    expect(queue.isAccepting).toBe(false);
  });

  it('gives up reading the depth of a queue when the connection is lost meanwhile', async () => {
    await queue.open();
    proxy.onClientData = (bytes) => {
      if (bytes.includes(channelClose)) void proxy.cut();
    };
    await queue.depth('due').catch(() => {});
    expect(proxy.openConnections).toBe(0);
  });

  it('cannot say how many chunks are in a queue that seems to have no reader, while a worker is alive', async () => {
    let isWorkerAlive = true;
    queue = new RabbitMqDeliveryQueue(proxy.url, queues.prefix, 1000, { isWorkerAlive: () => isWorkerAlive });
    await queue.open();
    await expect(queue.depth('due')).rejects.toThrow(`${queues.prefix}.due seems to be empty`);
    await queue.publish('due', chunk());
    await eventually(async () => (await queue.depth('due').catch(() => 0)) === 1, 'a chunk to be counted');
    await roundTrip(await consume());
    await eventually(async () => (await queue.depth('due').catch(() => 1)) === 0, 'a queue with a reader to be empty');
    isWorkerAlive = false;
    expect(await queue.depth('slow')).toBe(0);
  });

  it('waits for outstanding confirms before it closes', async () => {
    await queue.open();
    const outcomes = Promise.all(Array.from({ length: 3 }, () => queue.publish('due', chunk())));
    await queue.close();
    expect(new Set(await outcomes)).toEqual(new Set(['confirmed']));
  });

  describe('while the broker hangs', () => {
    beforeEach(async () => {
      await queue.open();
      await consume();
      await isReady();
      proxy.holdUp();
    });
    afterEach(() => proxy.letGo());

    it('does not answer for ever how many chunks it has, and answers again when the broker does', async () => {
      await expect(queue.depth('due')).rejects.toThrow('RabbitMQ did not answer');
      expect(queue.trouble).toBeDefined();
      proxy.letGo();
      expect(await eventually(async () => (await queue.depth('due').catch(() => -1)) === 0, 'an answer')).toBe(true);
      await isReady();
    });

    it('closes all the same', async () => {
      const consumption = await queue.consume('slow', 10, () => Promise.resolve()); // cannot be started
      await consumption.stop();
      await queue.close();
      expect(queue.isAccepting).toBe(false);
    });

    it('closes all the same while it is connecting anew', async () => {
      const other = newQueue();
      const opening = other.open();
      await other.close();
      await opening;
      expect(other.isAccepting).toBe(false);
    });
  });
});
