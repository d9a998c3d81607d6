import { beforeEach, describe, expect, it } from 'vitest';
import { ForeignReaders } from './foreign-readers.js';

describe('the readers of a queue', () => {
  let nowMs: number;
  let said: unknown[];
  let readers: ForeignReaders;

  beforeEach(() => {
    nowMs = 0;
    said = [];
    const note = (line: unknown) => void said.push(line);
    readers = new ForeignReaders({ debug() {}, log: note, warn: note }, () => nowMs);
  });

  /** Measured every ten seconds, as a dispatcher does. */
  function measure(forSeconds: number, count: number, workers: number): void {
    for (let passed = 0; passed < forSeconds; passed += 10) {
      readers.note('due', 'heraut.due', count, workers);
      nowMs += 10_000;
    }
  }

  it('are of another installation when there are more than workers for five minutes, which is said once a minute', () => {
    measure(300, 3, 2);
    expect(said).toEqual([]);
    measure(60, 3, 2);
    expect(said).toMatchObject([
      { event: 'queue.read-by-others', lane: 'due', queue: 'heraut.due', readers: 3, workers: 2 },
    ]);
    measure(60, 3, 2);
    expect(said).toHaveLength(2);
  });

  it('may be more for a while, as when a worker was killed: RabbitMQ has yet to find out', () => {
    for (let nr = 0; nr < 10; nr++) {
      measure(290, 3, 2);
      measure(10, 2, 2);
    }
    expect(said).toEqual([]);
  });

  it('are counted anew after a gap in which nobody could look', () => {
    measure(200, 3, 2);
    nowMs += 120_000;
    measure(300, 3, 2);
    expect(said).toEqual([]);
    measure(10, 3, 2);
    expect(said).toHaveLength(1);
  });

  it('are fewer than the workers while some connect, or have given back', () => {
    measure(3600, 1, 2);
    expect(said).toEqual([]);
  });
});
