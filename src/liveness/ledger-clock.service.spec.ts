import { describe, expect, it } from 'vitest';
import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { LedgerClock } from './ledger-clock.service.js';

const hourMs = 3_600_000;

/** Answers of Postgres come when the test says so. */
function setUp() {
  const world = { ownMs: 0, ledgerMs: 0, asked: 0 };
  const [answers, pauses]: (() => void)[][] = [[], []];
  const clock: Clock = {
    now: () => world.ownMs,
    pause: (ms) =>
      new Promise((resolve) =>
        pauses!.push(() => {
          world.ownMs += ms;
          resolve();
        }),
      ),
  };
  const query = () => {
    world.asked++;
    const answer = [{ now_ms: String(world.ledgerMs) }];
    return new Promise((resolve, reject) =>
      answers!.push(() => (world.ledgerMs < 0 ? reject(new Error('away')) : resolve(answer))),
    );
  };
  const ledger = new LedgerClock({ query } as unknown as Postgres, clock);
  const settle = async () => {
    for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  };
  const next = async (waiting: (() => void)[]) => {
    waiting.shift()!();
    await settle();
  };
  return { world, ledger, settle, answer: () => next(answers!), pausePasses: () => next(pauses!) };
}

describe('a comparison with Postgres’ clock', () => {
  it('finds what a suspended machine has lost', async () => {
    const { world, ledger, settle, answer } = setUp();
    world.ledgerMs = hourMs;
    expect(ledger.now()).toBe(0);
    const compared = ledger.compare();
    await settle();
    await answer();
    await compared;
    expect(ledger.now()).toBe(hourMs);
  });

  it('begins after the call, and those who call meanwhile share one, which comes a little later', async () => {
    const { world, ledger, settle, answer, pausePasses } = setUp();
    const first = ledger.compare();
    await settle();
    expect(world.asked).toBe(1);
    world.ledgerMs = hourMs; // the answer that is on its way knows nothing of this
    const later = Promise.all(Array.from({ length: 1000 }, () => ledger.compare()));
    await settle();
    await answer();
    await first;
    expect([world.asked, ledger.now()]).toEqual([1, 0]);
    await pausePasses();
    expect(world.asked).toBe(2);
    await answer();
    await later;
    expect([world.asked, ledger.now()]).toEqual([2, 250 + hourMs - 250]);
  });

  it('asks at once when the last was long ago', async () => {
    const { world, ledger, settle, answer } = setUp();
    for (const asked of [1, 2]) {
      const compared = ledger.compare();
      await settle();
      expect(world.asked).toBe(asked);
      await answer();
      await compared;
      world.ownMs += 250;
    }
  });

  it('fails where Postgres does not answer, and the next one asks again', async () => {
    const { world, ledger, settle, answer } = setUp();
    world.ledgerMs = -1;
    const failed = ledger.compare().catch((error: unknown) => error);
    await settle();
    await answer();
    expect(await failed).toEqual(new Error('away'));
    [world.ownMs, world.ledgerMs] = [1000, hourMs];
    const compared = ledger.compare();
    await settle();
    await answer();
    await compared;
    expect(ledger.now()).toBe(hourMs);
  });
});
