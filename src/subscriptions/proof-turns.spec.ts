import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CallerTurns } from '../infra/caller-turns.js';
import { proofTurns } from './proof-turns.js';

const tooMany = { status: 429, code: 'too-many-requests', extra: { headers: { 'retry-after': '5' } } };
const unavailable = { status: 503, code: 'service_unavailable', extra: { headers: { 'retry-after': '5' } } };

describe('the turns of proofs', () => {
  let turns: CallerTurns;
  /** Of the proofs that have their turn. */
  let ends: (() => void)[];

  beforeEach(() => {
    vi.useFakeTimers();
    turns = proofTurns(5000);
    ends = [];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const prove = (caller: string) => turns.run(caller, () => new Promise<void>((end) => ends.push(end)));
  const refusal = (asked: Promise<void>) => asked.catch((error: unknown) => error);
  const begin = async (caller: string, times: number) => {
    for (let nr = 0; nr < times; nr++) void prove(caller);
    await vi.advanceTimersByTimeAsync(0);
  };

  it('are eight at once for one caller, which is refused where none of them ends, and others go on', async () => {
    await begin('one', 8);
    const ninth = refusal(prove('one'));
    await begin('two', 1);
    expect(ends).toHaveLength(9);
    await vi.advanceTimersByTimeAsync(5000);
    expect(await ninth).toMatchObject(tooMany);
  });

  it('come to those of the same caller that wait, when others end', async () => {
    await begin('one', 8);
    const ninth = prove('one');
    ends[0]!();
    await vi.advanceTimersByTimeAsync(0);
    expect(ends).toHaveLength(9);
    ends[8]!();
    await ninth;
  });

  it('are given back by proofs that fail', async () => {
    const failing = () => turns.run('one', () => Promise.reject(new Error('no answer')));
    for (let nr = 0; nr < 9; nr++) await expect(failing()).rejects.toThrow('no answer');
  });

  it('are 64 at once for all, beyond which a caller with one proof is not blamed', async () => {
    for (let nr = 0; nr < 8; nr++) await begin(`caller ${nr}`, 8);
    const late = refusal(prove('another'));
    await vi.advanceTimersByTimeAsync(5000);
    expect(await late).toMatchObject(unavailable);
    expect(ends).toHaveLength(64);
    const inTime = prove('another');
    ends[0]!();
    await vi.advanceTimersByTimeAsync(0);
    ends[64]!();
    await inTime;
  });

  it('are not waited for by more than 200 of one caller', async () => {
    const waiting = Array.from({ length: 200 }, () => refusal(prove('one')));
    await expect(prove('one')).rejects.toMatchObject(tooMany);
    await vi.advanceTimersByTimeAsync(5000);
    expect(ends).toHaveLength(8);
    for (const end of ends) end();
    expect(await Promise.all(waiting)).toHaveLength(200);
  });
});
