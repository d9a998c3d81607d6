import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Postgres } from '../infra/postgres/postgres.js';
import { AlertLoop } from './alert-loop.service.js';
import type { NoteSender } from './note-sender.service.js';
import type { AlertRounds } from './rounds.service.js';

describe('the loop of alerts', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** One that is sending notes. */
  async function begin(sendDue: NoteSender['sendDue']): Promise<AlertLoop> {
    const loop = new AlertLoop(
      { transactionAside: async () => [] } as unknown as Postgres,
      { run: async () => undefined } as unknown as AlertRounds,
      { sendDue } as NoteSender,
    );
    loop.onApplicationBootstrap();
    await vi.advanceTimersByTimeAsync(3000);
    vi.useRealTimers(); // the limit of a stop is no timer that can be replaced
    return loop;
  }

  it('keeps nothing else from stopping while a note takes long, and waits for it only for a while', async () => {
    let isStopping = false;
    const loop = await begin((signal) => {
      signal.addEventListener('abort', () => (isStopping = true));
      return new Promise(() => {}); // its server hangs
    });
    expect(loop.onModuleDestroy()).toBeUndefined();
    expect(isStopping).toBe(true);
    await loop.beforeApplicationShutdown();
  });

  it('waits for a note that is on its way when the process stops', async () => {
    const steps: string[] = [];
    let arrive = () => {};
    const loop = await begin(async () => {
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
