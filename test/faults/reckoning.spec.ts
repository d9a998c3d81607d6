import { describe, expect, it } from 'vitest';
import { reckon, unbrokenMs, type Reckoning, type Strategy } from '../../scripts/faults/reckoning.mjs';

/** One accepted notification, as publisher, receiver and ledger know it. */
interface Fact {
  /** As the ledger has it; undefined: it does not. */
  state?: string;
  /** When it arrived, in milliseconds after it was accepted. */
  arrived?: number[];
  /** The webhook-id it came under, when it was not its own. */
  as?: string;
  /** It came after a later one about the same object. */
  overtaken?: boolean;
}

interface Circumstances {
  /** How often each may come again, by number. */
  again?: Record<number, number>;
  inFlight?: number;
  isInOrder?: boolean;
  mayBeUnknown?: boolean;
  recoversWithinMs?: number;
}

function reckonOf(
  strategy: Strategy,
  facts: Fact[],
  { again = {}, inFlight = 0, isInOrder = false, mayBeUnknown = true, recoversWithinMs = Infinity }: Circumstances = {},
): Reckoning {
  const idOf = (number: number) => `id-${number}`;
  const arrived = facts.flatMap((fact, number) => (fact.arrived ? [{ ...fact, arrived: fact.arrived, number }] : []));
  return reckon({
    strategy,
    published: {
      ids: facts.map((_, number) => idOf(number)),
      acceptedMs: Float64Array.from(facts, () => 1000),
      refused: [],
    },
    arrivals: {
      numbers: Int32Array.from(arrived, ({ number }) => number),
      times: Uint16Array.from(arrived, (fact) => fact.arrived.length),
      firstMs: Float64Array.from(arrived, (fact) => 1000 + fact.arrived[0]!),
      ids: arrived.map(({ number, as }) => as ?? idOf(number)),
      renamed: [],
      overtaken: arrived.filter(({ overtaken }) => overtaken).map(({ number }) => number),
    },
    ledger: new Map(facts.flatMap(({ state }, number) => (state ? [[idOf(number), { state, generation: 1 }]] : []))),
    faults: [{ fromMs: 1100, toMs: 1500 }],
    again: new Map(Object.entries(again).map(([number, times]) => [idOf(Number(number)), times])),
    inFlight,
    isInOrder,
    mayBeUnknown,
    recoversWithinMs,
  });
}

describe('the reckoning of the fault suite', () => {
  it('is content when everything arrived once, and says how long the slowest waited while nothing was broken', () => {
    const reckoning = reckonOf('at-least-once', [
      { state: 'delivered', arrived: [5] },
      { state: 'delivered', arrived: [700] },
    ]);
    expect(reckoning).toMatchObject({ accepted: 2, delivered: 2, lost: 0, duplicates: 0, longestRecoveryMs: 300 });
    expect(reckoning.wrong).toEqual([]);
  });

  it('finds that a recovery took longer than it may', () => {
    const facts = [{ state: 'delivered', arrived: [700] }];
    expect(reckonOf('at-least-once', facts, { recoversWithinMs: 300 }).wrong).toEqual([]);
    expect(reckonOf('at-least-once', facts, { recoversWithinMs: 200 }).wrong).toEqual([
      'at-least-once: a delivery took 0.3 s, at most 0.2 s are allowed',
    ]);
  });

  it('finds deliveries that did not arrive, in any state of the ledger', () => {
    const reckoning = reckonOf('at-least-once', [{ state: 'delivered' }, { state: 'failed' }, {}]);
    expect(reckoning).toMatchObject({ delivered: 0, lost: 3 });
    expect(reckoning.wrong).toEqual([
      'at-least-once: 3 were lost: id-0 (delivered), id-1 (failed), id-2 (not in the ledger)',
    ]);
  });

  it.each(['at-least-once', 'at-most-once'] as const)(
    'finds deliveries that arrived and of which the ledger says something else, or nothing: %s',
    (strategy) => {
      const facts = [{ state: 'delivered', arrived: [5] }, { state: 'cancelled', arrived: [5] }, { arrived: [5] }];
      const reckoning = reckonOf(strategy, facts);
      expect(reckoning).toMatchObject({ delivered: 3, lost: 0 });
      expect(reckoning.wrong).toEqual([
        `${strategy}: 2 arrived, and the ledger does not say so: id-1 (cancelled), id-2 (not in the ledger)`,
      ]);
    },
  );

  it('finds, at least once, one that arrived and has failed in the ledger', () => {
    expect(reckonOf('at-least-once', [{ state: 'failed', arrived: [5] }]).wrong).toEqual([
      'at-least-once: 1 arrived, and the ledger does not say so: id-0 (failed)',
    ]);
  });

  it('accepts, at most once, only missing deliveries that are reported', () => {
    const reckoning = reckonOf('at-most-once', [
      { state: 'unknown' },
      { state: 'unknown', arrived: [5] },
      { state: 'cancelled' },
    ]);
    expect(reckoning).toMatchObject({ delivered: 0, unknown: 2, unknownArrived: 1, failed: 0, lost: 1 });
    expect(reckoning.wrong).toEqual(['at-most-once: 1 were lost: id-2 (cancelled)']);
  });

  it('accepts none that failed, and none that is unknown where nothing explains it', () => {
    const facts = [{ state: 'failed' }, { state: 'failed', arrived: [5] }, { state: 'unknown' }];
    expect(reckonOf('at-most-once', facts, { mayBeUnknown: false }).wrong).toEqual([
      'at-most-once: 2 failed',
      'at-most-once: 1 are unknown, and nothing explains one',
    ]);
  });

  it('accepts, at least once, a duplicate of what a process had in flight that was killed, and of nothing else', () => {
    const facts = [
      { state: 'delivered', arrived: [5, 90] },
      { state: 'delivered', arrived: [5, 90, 95] },
      { state: 'delivered', arrived: [5] },
    ];
    const explained = { again: { 0: 1, 1: 2, 2: 3 } };
    expect(reckonOf('at-least-once', facts, explained)).toMatchObject({
      duplicates: 3,
      allowedDuplicates: 6,
      wrong: [],
    });
    expect(reckonOf('at-least-once', facts, { again: { 0: 1, 1: 1, 2: 3 } }).wrong).toEqual([
      'at-least-once: 1 duplicates that nothing explains, beside at most 0: id-1',
    ]);
  });

  it('accepts as many further duplicates, at least once, as were in flight when a fault struck for all', () => {
    const facts = [
      { state: 'delivered', arrived: [5, 90] },
      { state: 'delivered', arrived: [5, 90] },
    ];
    expect(reckonOf('at-least-once', facts, { inFlight: 2 })).toMatchObject({ duplicates: 2, wrong: [] });
    expect(reckonOf('at-least-once', facts, { inFlight: 1 }).wrong).toEqual([
      'at-least-once: 2 duplicates that nothing explains, beside at most 1: id-0, id-1',
    ]);
  });

  it('accepts no duplicate at most once', () => {
    const facts = [{ state: 'unknown', arrived: [5, 90] }];
    expect(reckonOf('at-most-once', facts, { again: { 0: 1 }, inFlight: 10 }).wrong).toEqual([
      'at-most-once: 1 duplicates that nothing explains, beside at most 0: id-0',
    ]);
  });

  it('finds deliveries that came under another webhook-id', () => {
    const reckoning = reckonOf('at-least-once', [{ state: 'delivered', arrived: [5], as: 'id-7' }]);
    expect(reckoning.wrong).toEqual(['at-least-once: 1 came under a webhook-id other than their own: id-0 as id-7']);
  });

  it('finds, where order was asked for, deliveries that came after a later one about the same object', () => {
    const facts = [
      { state: 'delivered', arrived: [90], overtaken: true },
      { state: 'delivered', arrived: [5] },
    ];
    expect(reckonOf('at-least-once', facts, { isInOrder: true }).wrong).toEqual([
      'at-least-once: 1 came after a later one about the same object: number 0',
    ]);
    expect(reckonOf('at-least-once', facts).wrong).toEqual([]);
  });

  it('does not count the time in which something was broken', () => {
    const faults = [
      { fromMs: 10, toMs: 20 },
      { fromMs: 50, toMs: 90 },
    ];
    expect(unbrokenMs(0, 100, faults)).toBe(50);
    expect(unbrokenMs(15, 60, faults)).toBe(30);
    expect(unbrokenMs(60, 70, faults)).toBe(0);
    expect(unbrokenMs(70, 60, faults)).toBe(0); // it arrived before its publisher had the answer
  });
});
