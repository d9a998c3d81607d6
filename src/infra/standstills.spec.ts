import { describe, expect, it } from 'vitest';
import { slotMs, Standstills } from './standstills.js';

describe('standstills', () => {
  function start() {
    let now = 0;
    const lag = { max: 0, reset: () => (lag.max = 0) };
    const standstills = new Standstills(lag, () => now);
    const standStill = (seconds: number) => (lag.max = Math.max(lag.max, seconds * 1e9));
    /** To the end of each slot meanwhile. */
    const pass = (slots: number) => {
      for (let slot = 0; slot < slots; slot++) {
        now += slotMs;
        standstills.endSlot();
      }
    };
    return { standstills, standStill, pass, setClock: (ms: number) => (now = ms) };
  }

  it('are told for a minute, however often they are read, and no longer', () => {
    const { standstills, standStill, pass } = start();
    standStill(2);
    expect([standstills.longest(), standstills.longest()]).toEqual([2, 2]);
    pass(12);
    expect(standstills.longest()).toBe(2);
    pass(1);
    expect(standstills.longest()).toBe(0);
  });

  it('of an hour ago are not told to the first one who reads since', () => {
    const { standstills, standStill, pass } = start();
    standStill(2);
    pass(720);
    expect(standstills.longest()).toBe(0);
    standStill(1);
    pass(1);
    expect(standstills.longest()).toBe(1);
  });

  it('of a time that is ahead of the clock are forgotten', () => {
    const { standstills, standStill, pass, setClock } = start();
    setClock(600_000);
    standStill(2);
    pass(1);
    setClock(0);
    expect(standstills.longest()).toBe(0);
  });
});
