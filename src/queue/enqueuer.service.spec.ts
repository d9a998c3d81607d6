import { describe, expect, it } from 'vitest';
import { setImmediate } from 'node:timers/promises';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { DeliveryQueue, Lane } from './delivery-queue.js';
import { Enqueuer } from './enqueuer.service.js';
import { QueueNotReached } from './queue-not-reached.js';

describe('the room for released deliveries', () => {
  it.each([
    ['is what their lane does not have yet', () => Promise.resolve(10), 4096 - 640],
    ['is all of it where the lane seems empty and unread', () => Promise.reject(new QueueNotReached('slow', 0)), 4096],
    ['is left to the queue where that cannot be asked', () => Promise.reject(new Error('away')), Infinity],
  ])('%s', async (_, depth: () => Promise<number>, room) => {
    const queue = { onCreated: () => {}, process: null, depth } as unknown as DeliveryQueue;
    const enqueuer = new Enqueuer(queue, {} as Postgres, { workers: 2 } as Heartbeat, {} as LedgerClock);
    expect(await enqueuer.roomForReleased()).toBe(room);
  });
});

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
    const enqueuer = new Enqueuer(queue, postgres, {} as Heartbeat, {} as LedgerClock);
    const deliveries = [newDelivery({ body: null }), newDelivery({ body: null, failures: 1 })];
    expect(await enqueuer.enqueueAll({ deliveries, catalogueVersion: 1, queuedAt: 0 })).toEqual(['slow']);
  });

  it.each([
    ['of first attempts', 'fresh', [1000]],
    ['of those that are due', 'due', [30_000]],
    ['of repeated ones', 'slow', [30_000]],
  ] as const)(
    'waits for the next trial of a silent lane %s, unless it goes by another one next',
    async (_, lane, delays) => {
      const queue = {
        onCreated: () => {},
        isSilent: (asked: Lane) => asked === lane,
        publish: async () => 'refused',
      } as unknown as DeliveryQueue;
      const asked: unknown[] = [];
      const query = async (_statement: unknown, values: { delay_ms?: number }) => (asked.push(values.delay_ms), []);
      const enqueuer = new Enqueuer(queue, { query } as unknown as Postgres, {} as Heartbeat, {} as LedgerClock);
      await enqueuer.enqueue(lane, [newDelivery({ body: null })], 1, 0);
      expect(asked).toEqual(delays);
    },
  );
});
