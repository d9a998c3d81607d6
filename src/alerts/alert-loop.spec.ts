import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { AlertLoop, evaluateEveryMs } from './alert-loop.service.js';
import { besideForMs } from './builds.js';
import type { NoteSender } from './note-sender.service.js';
import type { NoteChannel } from './note.js';
import type { AlertRounds } from './rounds.service.js';

describe('the loop of alerts', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const clock: Clock = { now: Date.now, pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)) };

  function start(sendDue: NoteSender['sendDue'], run: AlertRounds['run'] = async () => false): AlertLoop {
    const loop = new AlertLoop(
      { transactionAside: async () => [] } as unknown as Postgres,
      { run } as AlertRounds,
      { channelNames: ['mail', 'webhook'], sendDue } as unknown as NoteSender,
      clock,
    );
    loop.onApplicationBootstrap();
    return loop;
  }

  /** One that is sending notes since `forMs` after its start. */
  async function begin(sendDue: NoteSender['sendDue'], forMs = 3000): Promise<AlertLoop> {
    const loop = start(sendDue);
    await vi.advanceTimersByTimeAsync(forMs);
    vi.useRealTimers(); // the limit of a stop is no timer that can be replaced
    return loop;
  }

  it('keeps nothing else from stopping while a note takes long, and waits for it only for a while', async () => {
    let isStopping = false;
    const loop = await begin((_channel, signal) => {
      signal.addEventListener('abort', () => (isStopping = true));
      return new Promise(() => {}); // its server hangs
    });
    expect(loop.onModuleDestroy()).toBeUndefined();
    expect(isStopping).toBe(true);
    await loop.beforeApplicationShutdown();
  });

  it('goes on sending by one channel while the server of the other one hangs', async () => {
    const asked: NoteChannel[] = [];
    const loop = await begin((channel) => {
      asked.push(channel);
      return channel === 'mail' ? new Promise(() => {}) : Promise.resolve(0);
    }, 15_000);
    expect(asked).toEqual(['mail', 'webhook', 'webhook', 'webhook']);
    loop.onModuleDestroy();
  });

  it('has a round each 15 s alone, and leaves some of them to each other process that tries in the same rhythm', async () => {
    const had: [string, number][] = [];
    const roundsOf = (name: string) => async (pauseMs: number) => {
      const isTime = Date.now() - (had.at(-1)?.[1] ?? 0) >= pauseMs;
      if (isTime) had.push([name, Date.now()]);
      return isTime;
    };
    const send = async () => 0;
    const loops = [start(send, roundsOf('first'))];
    await vi.advanceTimersByTimeAsync(3000 + 10 * evaluateEveryMs);
    expect(had.map(([, time]) => time - had[0]![1])).toEqual(
      Array.from({ length: 11 }, (_, nr) => nr * evaluateEveryMs),
    );
    await vi.advanceTimersByTimeAsync(evaluateEveryMs / 2);
    loops.push(start(send, roundsOf('second')));
    await vi.advanceTimersByTimeAsync(evaluateEveryMs / 3);
    loops.push(start(send, roundsOf('third')));
    had.length = 1;
    await vi.advanceTimersByTimeAsync(besideForMs);
    const count = (name: string) => had.filter(([each]) => each === name).length;
    for (const name of ['first', 'second', 'third']) expect(count(name)).toBeGreaterThan(5);
    for (const loop of loops) loop.onModuleDestroy();
  });

  it('leaves rounds to a lone process of another build beside ten that began at the same moment', async () => {
    const lastOf = new Map<string, number>();
    const gaps: number[] = [];
    let endedAt = -Infinity;
    // As the ledger does.
    const roundsOf = (build: string) => async (pauseMs: number, pausePerBuildMs: number) => {
      const own = lastOf.get(build) ?? -Infinity;
      const before = [...lastOf.values()].filter((at) => at < own).length;
      const isTime = Date.now() - endedAt >= pauseMs + before * pausePerBuildMs;
      if (!isTime) return false;
      endedAt = Date.now();
      if (build === 'lone') gaps.push(endedAt - own);
      lastOf.set(build, endedAt);
      return true;
    };
    const send = async () => 0;
    const loops = [start(send, roundsOf('lone'))];
    await vi.advanceTimersByTimeAsync(evaluateEveryMs / 2);
    for (let nr = 0; nr < 10; nr++) loops.push(start(send, roundsOf('other')));
    await vi.advanceTimersByTimeAsync(2 * besideForMs);
    expect(gaps.length).toBeGreaterThan(20);
    expect(Math.max(...gaps.slice(1))).toBeLessThan(60_000);
    for (const loop of loops) loop.onModuleDestroy();
  });

  it('waits for a note that is on its way when the process stops', async () => {
    const steps: string[] = [];
    let arrive = () => {};
    const loop = await begin(async (channel) => {
      if (channel === 'mail') return 0;
      await new Promise<void>((resolve) => (arrive = resolve));
      steps.push('it has arrived');
      return 1;
    });
    loop.onModuleDestroy();
    const stopped = loop.beforeApplicationShutdown().then(() => steps.push('the loop has stopped'));
    setImmediate(arrive);
    await stopped;
    expect(steps).toEqual(['it has arrived', 'the loop has stopped']);
  });
});
