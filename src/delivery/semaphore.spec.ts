import { describe, expect, it } from '@jest/globals';
import { Semaphore } from './semaphore.js';

describe('a semaphore', () => {
  it('gives a permit at once while there is one', () => {
    const semaphore = new Semaphore(2);
    expect(semaphore.acquire()).toBeUndefined();
    expect(semaphore.acquire()).toBeUndefined();
    expect(semaphore.acquire()).toBeInstanceOf(Promise);
  });

  it('gives a permit that is released to the caller that waits longest', async () => {
    const semaphore = new Semaphore(1);
    void semaphore.acquire();
    const order: string[] = [];
    const first = semaphore.acquire()!.then(() => order.push('first'));
    const second = semaphore.acquire()!.then(() => order.push('second'));
    semaphore.release();
    await first;
    expect(order).toEqual(['first']);
    semaphore.release();
    await second;
    expect(order).toEqual(['first', 'second']);
  });

  it('never has more permits than it began with', () => {
    const semaphore = new Semaphore(1);
    void semaphore.acquire();
    void semaphore.acquire();
    semaphore.release(); // goes to the one in line
    expect(semaphore.acquire()).toBeInstanceOf(Promise);
    semaphore.release();
    semaphore.release();
    expect(semaphore.acquire()).toBeUndefined();
    expect(semaphore.acquire()).toBeInstanceOf(Promise);
  });

  it('is drained when all permits are back, those of callers in line included', async () => {
    const semaphore = new Semaphore(2);
    await semaphore.drained(); // nobody has one
    void semaphore.acquire();
    void semaphore.acquire();
    void semaphore.acquire();
    let isDrained = false;
    const drained = semaphore.drained().then(() => (isDrained = true));
    semaphore.release();
    semaphore.release();
    await Promise.resolve();
    expect(isDrained).toBe(false);
    semaphore.release();
    await drained;
  });
});
