import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import type { Chunk } from '../../src/queue/chunk.js';
import type { Taken } from '../../src/queue/delivery-queue.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { eventually } from '../support/eventually.js';
import { newDelivery } from '../support/new-delivery.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** `connection.tune-ok` (AMQP 0-9-1 §1.4.2.6): what client and broker have agreed on. */
const tuneOk = Buffer.from([0, 10, 0, 31]);
/** Of the method itself, the most channels, and the largest frame. */
const beforeHeartbeat = 4 + 2 + 4;

describe('the heartbeat of a connection to RabbitMQ', () => {
  let queues: TestQueues;
  let proxy: TcpProxy;
  /** In seconds, one for each connection. */
  let agreed: number[];
  let opened: RabbitMqDeliveryQueue[];

  beforeAll(() => Logger.overrideLogger(false));

  beforeEach(async () => {
    queues = createQueuePrefix();
    proxy = await TcpProxy.start(queues.url);
    agreed = [];
    opened = [];
    proxy.onClientData = (bytes) => {
      const at = bytes.indexOf(tuneOk);
      if (at >= 0) agreed.push(bytes.readUInt16BE(at + beforeHeartbeat));
    };
  });
  afterEach(async () => {
    proxy.letGo();
    await Promise.all(opened.map((each) => each.close()));
    await proxy.cut();
    await queues.remove();
  });

  async function openQueue(url: string): Promise<RabbitMqDeliveryQueue> {
    const queue = new RabbitMqDeliveryQueue(url, queues.prefix, 1000);
    opened.push(queue);
    await queue.open();
    return queue;
  }

  // The broker proposes 20, by the rabbitmq.conf of the project.
  it.each([
    ['10 s where the URL says nothing of it', '', 10],
    ['the one of the URL, where it is shorter', '?heartbeat=5', 5],
    ['the one of the URL, also where it is longer than ours', '?heartbeat=15', 15],
    ['the one of the broker, where it is shorter', '?heartbeat=60', 20],
    ['none, where the URL says so', '?heartbeat=0', 0],
    ['10 s where the URL says other things', '?locale=en_US', 10],
  ])('is %s', async (_, query, seconds) => {
    await openQueue(`${proxy.url}${query}`);
    expect(agreed).toEqual([seconds, seconds]);
  });

  it('has a consumer of which nothing is heard any more give up its chunks', async () => {
    const standing = await openQueue(`${proxy.url}?heartbeat=1`);
    const chunk: Chunk = { catalogueVersion: 1, queuedAt: 1, deliveries: [newDelivery({ body: Buffer.from('{}') })] };
    let isTaken = false;
    await standing.consume('due', 10, () => {
      isTaken = true;
      return new Promise(() => {});
    });
    await eventually(
      async () => isTaken || (await standing.publish('due', chunk)) === 'confirmed',
      'it to be taken on',
    );
    await eventually(() => isTaken, 'the chunk to be taken');
    proxy.holdUp();
    const taken: Taken[] = [];
    const healthy = await openQueue(queues.url);
    await healthy.consume('due', 10, (each) => Promise.resolve(void taken.push(each)));
    await eventually(() => taken.length > 0, 'the chunk to come to the other one');
    expect(taken[0]).toEqual({ chunk, lane: 'due', isRedelivered: true });
  });
});
