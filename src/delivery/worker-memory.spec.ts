import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { readSettings } from '../config/settings.js';
import { systemClock } from '../infra/clock.js';
import type { HandedOut } from '../ledger/delivery.js';
import type { DeliveriesInHand } from '../ledger/keep-in-hand.service.js';
import { InProcessDeliveryQueue } from '../queue/delivery-queue.in-process.js';
import type { QueueProgress } from '../queue/queue-progress.service.js';
import { LargeBodies } from './large-bodies.js';
import type { ChunkLoader, Loaded } from './chunk-loader.service.js';
import type { DeliverService } from './deliver.service.js';
import { Semaphore } from './semaphore.js';
import type { WebhookClient } from './webhook-client.js';
import { Worker } from './worker.service.js';

Logger.overrideLogger(false);

const chunks = 20;
const deliveriesEach = 10;
const size = 1000;
const sentTogether = 7;

const large = (nr: number): HandedOut => ({
  notificationId: `notification ${nr}`,
  subscriptionId: 'subscription',
  generation: 1,
  attempts: 0,
  failures: 0,
  replays: 0,
  expiresAt: null,
  body: null,
});

describe('a worker', () => {
  it('has no more large texts in memory than it may, however many chunks it has taken, and sends them all', async () => {
    const memory = new Semaphore(sentTogether * size);
    let inMemory = 0;
    let most = 0;
    const read = () => {
      most = Math.max(most, ++inMemory);
      return Promise.resolve(Buffer.alloc(size));
    };
    const sent: string[] = [];
    const deliver = async ({ notificationId, body }: Loaded) => {
      await new Promise((resolve) => setImmediate(resolve));
      sent.push(`${notificationId}: ${body.length}`);
      inMemory--;
    };
    const loader = {
      load: ({ deliveries }: { deliveries: HandedOut[] }) => {
        const sizes = new Map(deliveries.map(({ notificationId }) => [notificationId, size]));
        return Promise.resolve({ deliveries, bodies: new LargeBodies(sizes, memory, read) });
      },
    };
    const queue = new InProcessDeliveryQueue('process', 1000);
    const worker = new Worker(
      { settings: readSettings({}) },
      systemClock,
      queue,
      { take: () => {}, finish: () => {} } as unknown as QueueProgress,
      loader as unknown as ChunkLoader,
      { deliver } as unknown as DeliverService,
      { keep: () => Promise.resolve() } as unknown as DeliveriesInHand,
      { abandonAll: () => {}, close: () => Promise.resolve() } as unknown as WebhookClient,
    );
    await worker.onApplicationBootstrap();
    for (let chunk = 0; chunk < chunks; chunk++) {
      const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => large(chunk * deliveriesEach + nr));
      await queue.publish('due', { catalogueVersion: 0, queuedAt: 0, deliveries });
    }
    await worker.onModuleDestroy(); // waits for all that it has taken
    const all = Array.from({ length: chunks * deliveriesEach }, (_, nr) => `notification ${nr}: ${size}`);
    expect(sent.toSorted()).toEqual(all.toSorted());
    expect(most).toBe(sentTogether);
  });
});
