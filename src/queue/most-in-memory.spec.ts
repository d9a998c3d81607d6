import { describe, expect, it } from 'vitest';
import { mostInMemory } from './most-in-memory.js';

describe('how many deliveries a worker may have in memory', () => {
  it.each([
    [1, 16_384],
    [2, 16_384],
    [4, 8192],
    [8, 4096],
    [200, 4096],
  ])('of %i workers each has %i', (workers, deliveries) => {
    expect(mostInMemory(workers)).toEqual({ deliveries, bytes: 32 * 1024 * 1024 });
  });
});
