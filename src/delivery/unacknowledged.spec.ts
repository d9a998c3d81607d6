import { describe, expect, it } from 'vitest';
import { Unacknowledged } from './unacknowledged.js';

describe('chunks that are not acknowledged', () => {
  const add = (to: Unacknowledged, name: string, deliveries: number, detached: string[]) =>
    to.add({ deliveries, detach: () => detached.push(name) });

  it('are detached beyond the most, the oldest first and each once', () => {
    const [unacknowledged, detached] = [new Unacknowledged(2), [] as string[]];
    for (const name of ['one', 'two', 'three', 'four']) add(unacknowledged, name, 1, detached);
    expect(detached).toEqual(['one', 'two']);
  });

  it('are not counted any more when they were acknowledged', () => {
    const [unacknowledged, detached] = [new Unacknowledged(2), [] as string[]];
    const acknowledge = add(unacknowledged, 'one', 1, detached);
    add(unacknowledged, 'two', 1, detached);
    acknowledge();
    acknowledge();
    add(unacknowledged, 'three', 1, detached);
    expect(detached).toEqual([]);
    add(unacknowledged, 'four', 1, detached);
    expect(detached).toEqual(['two']);
  });

  it('are counted once where one that was detached is acknowledged later', () => {
    const [unacknowledged, detached] = [new Unacknowledged(2), [] as string[]];
    const acknowledge = add(unacknowledged, 'one', 100, detached);
    for (const name of ['two', 'three']) add(unacknowledged, name, 1, detached);
    expect(detached).toEqual(['one']);
    acknowledge();
    add(unacknowledged, 'four', 512, detached);
    expect(detached).toEqual(['one']); // with the others these are too many
  });

  it('stay while they have many deliveries, which wait for the worker and not for an endpoint', () => {
    const [unacknowledged, detached] = [new Unacknowledged(2), [] as string[]];
    const acknowledge = add(unacknowledged, 'one', 500, detached);
    for (const name of ['two', 'three', 'four']) add(unacknowledged, name, 10, detached);
    expect([detached, unacknowledged.areMany]).toEqual([[], true]);
    acknowledge();
    add(unacknowledged, 'five', 10, detached);
    expect(detached).toEqual(['two']);
  });
});
