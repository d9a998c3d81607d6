import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { LiveEvents } from './live-events.service.js';

describe('live events that take long to be written', () => {
  let live: LiveEvents;
  /** The writes that were begun, with the ids of their subscriptions. */
  let writes: { ids: string[]; done: () => void }[];

  beforeEach(() => {
    vi.useFakeTimers();
    writes = [];
    const postgres = {
      // The texts are one binary array.
      affected: (_: unknown, { item_event: texts }: { item_event: Buffer }) =>
        new Promise<number>((resolve) => {
          const ids = [...texts.toString('latin1').matchAll(/"subscriptionId":"(\d)"/g)].map(([, id]) => id!);
          writes.push({ ids, done: () => resolve(ids.length) });
        }),
      query: () => Promise.resolve([]),
    } as unknown as Postgres;
    live = new LiveEvents(postgres, { isListenedTo: true } as unknown as Heartbeat, new OperationalEvents());
  });
  afterEach(() => vi.useRealTimers());

  const report = (subscriptionId: string) => live.report({ event: 'subscription.enabled', subscriptionId });
  const ids = () => writes.map((write) => write.ids);

  it('take one connection at a time: what comes meanwhile is in the next write', async () => {
    for (const id of ['1', '2', '3']) {
      report(id);
      await vi.advanceTimersByTimeAsync(250);
    }
    expect(ids()).toEqual([['1']]);
    writes[0]!.done();
    await vi.advanceTimersByTimeAsync(249);
    expect(ids()).toEqual([['1']]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ids()).toEqual([['1'], ['2', '3']]);
    writes[1]!.done();
    await vi.advanceTimersByTimeAsync(1000);
    expect(writes).toHaveLength(2);
  });

  it('are all written before the process ends, in their order', async () => {
    report('1');
    await vi.advanceTimersByTimeAsync(250);
    report('2');
    const ending = live.onApplicationShutdown();
    await vi.advanceTimersByTimeAsync(1000);
    expect(ids()).toEqual([['1']]);
    writes[0]!.done();
    await vi.advanceTimersByTimeAsync(1000);
    expect(ids()).toEqual([['1'], ['2']]);
    writes[1]!.done();
    await ending;
  });
});
