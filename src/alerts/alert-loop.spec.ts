import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Postgres } from '../infra/postgres/postgres.js';
import { AlertLoop } from './alert-loop.service.js';
import type { NoteSender } from './note-sender.service.js';
import type { AlertRounds } from './rounds.service.js';

describe('the loop of alerts', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('keeps nothing else from stopping while a note takes long, and waits for it only for a while', async () => {
    let isStopping = false;
    const sender = {
      sendDue: (signal: AbortSignal) => {
        signal.addEventListener('abort', () => (isStopping = true));
        return new Promise(() => {}); // its server hangs
      },
    };
    const loop = new AlertLoop(
      { transactionAside: async () => [] } as unknown as Postgres,
      { run: async () => undefined } as unknown as AlertRounds,
      sender as unknown as NoteSender,
    );
    loop.onApplicationBootstrap();
    await vi.advanceTimersByTimeAsync(3000);
    vi.useRealTimers(); // its limit is no timer that can be replaced
    expect(loop.onModuleDestroy()).toBeUndefined();
    expect(isStopping).toBe(true);
    await loop.beforeApplicationShutdown();
  });
});
