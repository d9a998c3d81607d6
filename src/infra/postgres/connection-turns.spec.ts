import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CallerTurns } from '../caller-turns.js';
import { connectionTurns } from './connection-turns.js';
import { requestsInLine } from './postgres.metrics.js';

const retryAfter = { headers: { 'retry-after': '5' } };
const refused = { status: 429, code: 'too-many-requests', extra: retryAfter };
const unavailable = { status: 503, code: 'service_unavailable', extra: retryAfter };

describe('the turns of callers', () => {
  let turns: CallerTurns;
  let ends: (() => void)[];
  let inLineBefore: number;
  const inLine = async () => (await requestsInLine.get()).values[0]!.value;
  beforeEach(async () => {
    inLineBefore = await inLine();
    vi.useFakeTimers();
    turns = connectionTurns(8, 5000).searches;
    ends = [];
  });
  afterEach(async () => {
    vi.useRealTimers();
    expect(await inLine(), 'who is in line still').toBe(inLineBefore);
  });

  /** Runs until `ends` is told. */
  const run = (caller: string, among = turns) =>
    among.run(caller, () => new Promise<void>((resolve) => ends.push(resolve)));
  const asItIs = (error: unknown) => error;
  const settle = () => vi.advanceTimersByTimeAsync(0);

  it('leave a quarter of the connections to others, and half of the rest to other callers', async () => {
    const all = [...Array(10).fill('one'), ...Array(10).fill('two')].map((caller: string) => run(caller));
    await settle();
    expect(ends).toHaveLength(6);
    const alone = connectionTurns(8, 5000).changes;
    for (let nr = 0; nr < 10; nr++) all.push(run('one', alone));
    await settle();
    expect(ends).toHaveLength(6 + 3);
    while (ends.length > 0) {
      for (const end of ends.splice(0)) end();
      await settle();
    }
    await Promise.all(all);
  });

  it('are refused to a caller that has 200 in line, not to another one', async () => {
    const all = [1, 2, 3].map(() => run('one'));
    await settle();
    for (let nr = 0; nr < 200; nr++) all.push(run('one'));
    await expect(run('one')).rejects.toMatchObject(refused);
    const other = run('two');
    await settle();
    expect(ends).toHaveLength(4);
    while (ends.length > 0) {
      for (const end of ends.splice(0)) end();
      await settle();
    }
    await Promise.all([...all, other]);
  });

  it('are refused where they do not come in time, and free the line', async () => {
    const running = [1, 2, 3].map(() => run('one'));
    const late = run('one').catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(5000);
    expect(await late).toMatchObject(refused);
    for (const end of ends.splice(0)) end();
    await Promise.all(running);
    const next = run('one');
    await settle();
    ends[0]!();
    await next;
  });

  it('are not said to be taken by a caller that asks for no more than it may have', async () => {
    const running = ['one', 'two'].flatMap((caller) => [1, 2, 3].map(() => run(caller)));
    await settle();
    expect(ends).toHaveLength(6);
    const late = ['three', 'four', 'four', 'four', 'four', 'one'].map((caller) => run(caller).catch(asItIs));
    await vi.advanceTimersByTimeAsync(5000);
    const four = [refused, unavailable, unavailable, unavailable];
    expect(await Promise.all(late)).toMatchObject([unavailable, ...four, refused]);
    for (const end of ends) end();
    await Promise.all(running);
  });

  it('are those of changes, or of searches, where there are too few to share', async () => {
    for (const connections of [1, 2, 3]) {
      const { changes, searches } = connectionTurns(connections, 5000);
      const search = searches.run('one', () => new Promise<void>((resolve) => ends.push(resolve)));
      expect(await changes.run('one', () => Promise.resolve('done'))).toBe('done');
      ends.pop()!();
      await search;
    }
  });

  it('are given back where the work fails', async () => {
    const failing = () => turns.run('one', () => Promise.reject(new Error('no answer')));
    for (let nr = 0; nr < 5; nr++) await expect(failing()).rejects.toThrow('no answer');
    expect(await turns.run('one', () => Promise.resolve('done'))).toBe('done');
  });
});
