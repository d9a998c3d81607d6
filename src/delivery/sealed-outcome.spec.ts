import { describe, expect, it } from 'vitest';
import type { Outcome } from '../ledger/settle.service.js';
import { fromSeal, toSeal } from './sealed-outcome.js';

const attempt = {
  number: 1,
  startedAt: 1_763_625_600_000,
  durationMs: 3,
  connectMs: null,
  firstByteMs: null,
  status: 204,
  error: null,
  details: null,
};
type Sealable = Outcome & { state: 'delivered' | 'failed' };

describe('a sealed outcome', () => {
  it.each<[string, Sealable]>([
    ['a success', { state: 'delivered', attempt }],
    ['a refusal', { state: 'failed', attempt: { ...attempt, status: 410, error: 'HTTP 410: gone' } }],
    ['a failure without an answer', { state: 'failed', attempt: { ...attempt, status: null, error: 'ECONNRESET' } }],
    ['a failure of which nothing is known', { state: 'failed', attempt: { ...attempt, status: null } }],
    ['an end without a call', { state: 'failed', attempt: null }],
  ])('comes back as it was, through the JSON of a store: %s', (_what, outcome) => {
    expect(fromSeal(JSON.parse(JSON.stringify(toSeal(outcome))) as ReturnType<typeof toSeal>)).toEqual(outcome);
  });

  it('has whole milliseconds, as the ledger has', () => {
    const seal = toSeal({ state: 'delivered', attempt: { ...attempt, durationMs: 2.718 } });
    expect(fromSeal(seal).attempt?.durationMs).toBe(3);
  });

  it('leaves out what the ledger has beside the result: where the call went and what it was answered', () => {
    const details = { address: '192.0.2.1:80', headers: {}, body: 'x'.repeat(4096) };
    const failed = { ...attempt, connectMs: 1, firstByteMs: 2, status: 410, details };
    const seal = toSeal({ state: 'failed', attempt: failed });
    expect(fromSeal(seal)).toEqual({ state: 'failed', attempt: { ...attempt, status: 410 } });
  });

  it('of a success fits into what Redis stores beside the header of a value: 44 characters, with the two of the store', () => {
    const long = { ...attempt, number: 100, durationMs: 10_000 };
    expect(JSON.stringify(toSeal({ state: 'delivered', attempt: long })).length + 2).toBeLessThanOrEqual(44);
  });
});
