import { describe, expect, it } from 'vitest';
import { validate, version } from 'uuid';
import { timeOfId } from '../ledger/partitions.js';
import { notificationIds } from './notification-ids.js';

const noon = Date.UTC(2026, 10, 20, 12);

describe('the ids of notifications', () => {
  it('are UUIDs of version 7 with the time that the given clock shows', () => {
    let now = noon + 0.75;
    const newId = notificationIds(() => now);
    for (now of [noon + 0.75, noon + 5, noon - 86_400_000]) {
      const id = newId();
      expect([validate(id), version(id)]).toEqual([true, 7]);
      expect(timeOfId(id)).toBe(Math.floor(now));
    }
  });

  it('are never the same, in one millisecond and in several processes', () => {
    const [one, another] = [notificationIds(() => noon), notificationIds(() => noon)];
    const ids = new Set<string>();
    for (let i = 0; i < 20_000; i++) ids.add(one()).add(another());
    expect(ids.size).toBe(40_000);
  });

  it('use each random byte once: no part of two ids repeats with the pool', () => {
    const newId = notificationIds(() => noon);
    const tails = Array.from({ length: 1000 }, () => newId().slice(-11));
    expect(new Set(tails).size).toBe(1000);
  });
});
