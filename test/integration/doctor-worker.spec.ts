import { describe, expect, it } from 'vitest';
import { examine } from '../../src/doctor/examine.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { TestLedger } from '../support/ledger.js';
import { real } from '../support/stacks.js';

describe('the doctor', () => {
  it('does not say that nobody reads an empty queue while a worker is alive, though no dispatcher is', async () => {
    const { settings, release } = await real.prepare();
    const test = await TestLedger.open(settings);
    const queue = new RabbitMqDeliveryQueue(settings.AMQP_URL!, settings.QUEUE_PREFIX!, 1000);
    await queue.open();
    const found = async () => (await examine(settings)).find(({ name }) => name === 'rabbitmq-queues')!.found;
    expect(await found()).toBe(`nobody reads ${settings.QUEUE_PREFIX}.fresh (0 messages)`);
    await test.startProcess(); // a worker
    expect(await found()).toContain('although a worker is alive');
    await queue.close();
    await test.close();
    await release();
  });
});
