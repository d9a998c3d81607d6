import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Config } from '../config/config.module.js';
import type { Clock } from '../infra/clock.js';
import type { BacklogPace } from '../queue/backlog-pace.service.js';
import type { ReplayRunner } from '../replays/replay-runner.service.js';
import { DispatchLoop } from './dispatch-loop.service.js';
import type { Dispatcher } from './dispatcher.service.js';
import { roundAge } from './dispatching.metrics.js';
import type { Measurements } from './measurements.service.js';
import type { Releaser } from './releaser.service.js';
import type { Upkeep } from './upkeep.service.js';

Logger.overrideLogger(false);

describe('the loop of the dispatcher', () => {
  const idle = () => Promise.resolve(0);
  const never = new Promise<never>(() => {});
  let loop: DispatchLoop | undefined;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    loop?.onModuleDestroy();
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  function begin(parts: {
    handOutDue?: Dispatcher['handOutDue'];
    lineUp?: Dispatcher['lineUp'];
    releaseHeld?: Releaser['releaseHeld'];
  }): DispatchLoop {
    const { handOutDue = idle, lineUp = () => Promise.resolve(), releaseHeld = idle } = parts;
    loop = new DispatchLoop(
      { settings: { DISPATCH_INTERVAL_MS: 250 } } as Config,
      { handOutDue, lineUp, rules: [] } as unknown as Dispatcher,
      { releaseHeld } as unknown as Releaser,
      { stepAll: idle } as unknown as ReplayRunner,
      { tasks: [] } as unknown as Upkeep,
      { tasks: [] } as unknown as Measurements,
      { restAfter: () => 0 } as unknown as BacklogPace,
      { now: () => 0, pause: () => Promise.resolve() } as Clock,
    );
    loop.onApplicationBootstrap();
    return loop;
  }

  it('shows that it works while a round does not end, because there always is a backlog', async () => {
    const renewed = vi.spyOn(roundAge, 'renew');
    const times = (task: string) => renewed.mock.calls.filter(([name]) => name === task).length;
    begin({
      handOutDue: async (_stopping, afterBatch) => {
        for (let batch = 1; batch <= 5; batch++) await afterBatch?.(batch * 128);
        return never;
      },
      lineUp: async (_stopping, afterBatch) => {
        for (let batch = 1; batch <= 5; batch++) afterBatch?.();
        return never;
      },
      releaseHeld: async (_stopping, afterLooks) => {
        for (let look = 1; look <= 5; look++) afterLooks?.();
        return never;
      },
    });
    await vi.advanceTimersByTimeAsync(10);
    expect(['hand-out', 'line-up', 'release'].map(times)).toEqual([1 + 5, 1 + 5, 1 + 5]);
  });

  it('keeps nothing else from stopping while a task takes long, and waits for it only for a while', async () => {
    let isStopping = false;
    const stopping = begin({
      handOutDue: (signal) => {
        signal.addEventListener('abort', () => (isStopping = true));
        return never;
      },
    });
    await vi.advanceTimersByTimeAsync(10);
    vi.useRealTimers(); // its limit is no timer that can be replaced
    expect(stopping.onModuleDestroy()).toBeUndefined();
    expect(isStopping).toBe(true);
    await stopping.beforeApplicationShutdown();
  });
});
