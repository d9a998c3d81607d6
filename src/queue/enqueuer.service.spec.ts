import { describe, expect, it } from 'vitest';
import { setImmediate } from 'node:timers/promises';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import type { DeliveryQueue, Lane } from './delivery-queue.js';
import { Enqueuer } from './enqueuer.service.js';

describe('what the ledger handed out', () => {
  it('is refused in part where the queue refuses one lane at once and confirms another later', async () => {
    const queue = {
      onCreated: () => {},
      isSilent: () => false,
      publish: async (lane: Lane) => {
        if (lane === 'slow') return 'refused';
        for (let turn = 0; turn < 20; turn++) await setImmediate();
        return 'confirmed';
      },
    } as unknown as DeliveryQueue;
    const postgres = { query: () => Promise.resolve([]) } as unknown as Postgres;
    const enqueuer = new Enqueuer(queue, postgres, {} as Heartbeat);
    const deliveries = [newDelivery({ body: null }), newDelivery({ body: null, failures: 1 })];
    expect(await enqueuer.enqueueAll({ deliveries, catalogueVersion: 1, queuedAt: 0 })).toEqual(['slow']);
  });
});
