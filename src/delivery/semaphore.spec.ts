import { describe, expect, it } from 'vitest';
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

  it('gives several permits at once, in the order of the callers: a small wish does not overtake a large one', async () => {
    const semaphore = new Semaphore(10);
    expect(semaphore.acquire(6)).toBeUndefined();
    const order: string[] = [];
    const large = semaphore.acquire(5)!.then(() => order.push('large'));
    const small = semaphore.acquire(1)!.then(() => order.push('small'));
    semaphore.release(6);
    await Promise.all([large, small]);
    expect(order).toEqual(['large', 'small']);
    expect(semaphore.acquire(4)).toBeUndefined();
    expect(semaphore.acquire(1)).toBeInstanceOf(Promise);
  });

  it('gives a caller that wants more permits than there are all of them, once no other holds one', async () => {
    const semaphore = new Semaphore(10);
    expect(semaphore.acquire(1)).toBeUndefined();
    let isIn = false;
    const large = semaphore.acquire(100)!.then(() => (isIn = true));
    const after = semaphore.acquire(1)!;
    await new Promise((resolve) => setImmediate(resolve));
    expect(isIn).toBe(false);
    semaphore.release(1);
    await large;
    semaphore.release(100);
    await after;
    expect(semaphore.acquire(9)).toBeUndefined();
    expect(semaphore.acquire(1)).toBeInstanceOf(Promise);
  });
});
