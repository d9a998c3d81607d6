import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Postgres } from '../infra/postgres/postgres.js';
import { AlertLoop } from './alert-loop.service.js';
import type { NoteSender } from './note-sender.service.js';
import type { NoteChannel } from './note.js';
import type { AlertRounds } from './rounds.service.js';

describe('the loop of alerts', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** One that is sending notes since `forMs` after its start. */
  async function begin(sendDue: NoteSender['sendDue'], forMs = 3000): Promise<AlertLoop> {
    const loop = new AlertLoop(
      { transactionAside: async () => [] } as unknown as Postgres,
      { run: async () => undefined } as unknown as AlertRounds,
      { channelNames: ['mail', 'webhook'], sendDue } as unknown as NoteSender,
    );
    loop.onApplicationBootstrap();
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
