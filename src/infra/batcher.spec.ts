import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Batcher, type BatcherOptions } from './batcher.js';

class Poison extends Error {}

/** A batcher whose writes end when the test says so. */
function controlled(options: Partial<BatcherOptions> = {}) {
  const writes: { items: string[]; finish: () => void; fail: (error: unknown) => void }[] = [];
  const batcher = new Batcher<string, string>(
    (items) =>
      new Promise((resolve, reject) => {
        writes.push({ items, finish: () => resolve(items.map((item) => `${item}!`)), fail: reject });
      }),
    { maxItems: 3, lingerMs: 10, ...options },
  );
  return { batcher, writes, batches: () => writes.map(({ items }) => items.join('')) };
}

describe('a batcher', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Lets this much time pass on the fake clock. */
  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

  it('writes what arrives in the same turn together, and gives each caller its own result', async () => {
    const { batcher, writes, batches } = controlled();
    const results = Promise.all([batcher.add('a'), batcher.add('b')]);
    await pass(0);
    expect(batches()).toEqual(['ab']);
    writes[0]!.finish();
    expect(await results).toEqual(['a!', 'b!']);
  });

  it('does not wait for more items when the batch before had only one', async () => {
    const { batcher, writes, batches } = controlled();
    void batcher.add('a');
    await pass(0);
    writes[0]!.finish();
    await pass(0);
    void batcher.add('b');
    await pass(0);
    expect(batches()).toEqual(['a', 'b']);
  });

  it('waits the linger time for more items when the batch before had several', async () => {
    const { batcher, writes, batches } = controlled();
    void batcher.add('a');
    void batcher.add('b');
    await pass(0);
    writes[0]!.finish();
    await pass(0);
    void batcher.add('c');
    await pass(9);
    expect(batches()).toEqual(['ab']);
    void batcher.add('d');
    await pass(1);
    expect(batches()).toEqual(['ab', 'cd']);
  });

  it('never waits when it has no linger time', async () => {
    const { batcher, writes, batches } = controlled({ lingerMs: 0 });
    void batcher.add('a');
    void batcher.add('b');
    await pass(0);
    writes[0]!.finish();
    await pass(0);
    void batcher.add('c');
    await pass(0);
    expect(batches()).toEqual(['ab', 'c']);
  });

  it('writes a full batch at once, in the order of the calls, and the rest after it', async () => {
    const { batcher, writes, batches } = controlled();
    for (const item of 'abcde') void batcher.add(item);
    await pass(0);
    expect(batches()).toEqual(['abc']);
    writes[0]!.finish();
    await pass(10);
    expect(batches()).toEqual(['abc', 'de']);
  });

  it('does not let a full batch wait for the linger time of the one before', async () => {
    const { batcher, writes, batches } = controlled();
    for (const item of 'ab') void batcher.add(item);
    await pass(0);
    writes[0]!.finish();
    await pass(0);
    for (const item of 'cde') void batcher.add(item);
    expect(batches()).toEqual(['ab', 'cde']);
  });

  it('collects what arrives while it writes into the next batch', async () => {
    const { batcher, writes, batches } = controlled();
    void batcher.add('a');
    await pass(0);
    void batcher.add('b');
    void batcher.add('c');
    await pass(100);
    expect(batches()).toEqual(['a']);
    writes[0]!.finish();
    await pass(0);
    expect(batches()).toEqual(['a', 'bc']);
  });

  it('writes as many batches at the same time as it may, and no more', async () => {
    const { batcher, writes, batches } = controlled({ concurrency: 2 });
    for (const item of 'abcdefgh') void batcher.add(item);
    await pass(50);
    expect(batches()).toEqual(['abc', 'def']);
    writes[1]!.finish();
    await pass(50);
    expect(batches()).toEqual(['abc', 'def', 'gh']);
  });

  it('tells every caller of a batch when its write fails, and goes on', async () => {
    const { batcher, writes } = controlled();
    const results = Promise.allSettled([batcher.add('a'), batcher.add('b')]);
    await pass(0);
    writes[0]!.fail(new Error('down'));
    expect(await results).toEqual([
      { status: 'rejected', reason: new Error('down') },
      { status: 'rejected', reason: new Error('down') },
    ]);
    const next = batcher.add('c');
    await pass(10);
    writes[1]!.finish();
    expect(await next).toBe('c!');
  });

  it('tells every caller when its write throws instead of rejecting', async () => {
    const batcher = new Batcher<string, string>(
      () => {
        throw new Error('bug');
      },
      { maxItems: 3, lingerMs: 0 },
    );
    const [result] = await Promise.all([batcher.add('a').catch((error: unknown) => error), pass(0)]);
    expect(result).toMatchObject({ message: 'bug' });
  });

  it('repeats a batch item by item when one item may be to blame, so that it hurts only itself', async () => {
    const written: string[] = [];
    const batcher = new Batcher<string, string>(
      (items) => {
        if (items.includes('poison')) return Promise.reject(new Poison());
        written.push(...items);
        return Promise.resolve(items);
      },
      { maxItems: 3, lingerMs: 0, isolate: (error) => error instanceof Poison },
    );
    const results = Promise.allSettled([batcher.add('a'), batcher.add('poison'), batcher.add('b')]);
    await pass(0);
    expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(written).toEqual(['a', 'b']);
  });

  it('does not repeat a batch that failed for another reason', async () => {
    let writes = 0;
    const batcher = new Batcher<string, string>(
      () => {
        writes++;
        return Promise.reject(new Error('down'));
      },
      { maxItems: 3, lingerMs: 0, isolate: (error) => error instanceof Poison },
    );
    const results = Promise.allSettled([batcher.add('a'), batcher.add('b')]);
    await pass(0);
    await results;
    expect(writes).toBe(1);
  });

  describe('when drained', () => {
    it('is done at once when it has nothing', async () => {
      await expect(controlled().batcher.drain()).resolves.toBeUndefined();
    });

    it('is done after the last write, of items that wait and items that are being written', async () => {
      const { batcher, writes } = controlled();
      for (const item of 'abcd') void batcher.add(item);
      await pass(0);
      let drained = false;
      void batcher.drain().then(() => (drained = true));
      writes[0]!.finish();
      await pass(10);
      expect(drained).toBe(false);
      writes[1]!.finish();
      await pass(0);
      expect(drained).toBe(true);
    });

    it('is done as well when the last write fails', async () => {
      const { batcher, writes } = controlled();
      const result = batcher.add('a').catch((error: unknown) => error);
      await pass(0);
      const drained = batcher.drain();
      writes[0]!.fail(new Error('down'));
      await drained;
      expect(await result).toMatchObject({ message: 'down' });
      expect(writes).toHaveLength(1);
    });
  });
});
