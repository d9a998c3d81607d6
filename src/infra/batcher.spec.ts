import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Batcher, BatcherRefusal, type BatcherOptions } from './batcher.js';

class Poison extends Error {}

const bounds = { maxWaiting: { items: 1000 }, turnWithinMs: 60_000 };

/** A batcher whose writes end when the test says so. */
function controlled(options: Partial<BatcherOptions<string>> = {}) {
  const writes: { items: string[]; finish: () => void; fail: (error: unknown) => void }[] = [];
  const batcher = new Batcher<string, string>(
    (items) =>
      new Promise((resolve, reject) => {
        writes.push({ items, finish: () => resolve(items.map((item) => `${item}!`)), fail: reject });
      }),
    { ...bounds, maxItems: 3, lingerMs: 10, ...options },
  );
  return { batcher, writes, batches: () => writes.map(({ items }) => items.join('')) };
}

describe('a batcher', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Lets this much time pass on the fake clock. */
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

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

  it('that lingers alone waits for more items also when the batch before had only one, or there was none', async () => {
    const { batcher, writes, batches } = controlled({ lingersAlone: true });
    void batcher.add('a');
    await pass(9);
    expect(batches()).toEqual([]);
    void batcher.add('b');
    await pass(1);
    expect(batches()).toEqual(['ab']);
    writes[0]!.finish();
    await pass(0);
    void batcher.add('c');
    await pass(10);
    expect(batches()).toEqual(['ab', 'c']);
    writes[1]!.finish();
    await pass(0);
    void batcher.add('d');
    await pass(9);
    expect(batches()).toEqual(['ab', 'c']);
    void batcher.add('e');
    void batcher.add('f');
    await pass(0);
    expect(batches()).toEqual(['ab', 'c', 'def']); // full
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
      { ...bounds, maxItems: 3, lingerMs: 0 },
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
      { ...bounds, maxItems: 3, lingerMs: 0, isolate: (error) => error instanceof Poison },
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
      { ...bounds, maxItems: 3, lingerMs: 0, isolate: (error) => error instanceof Poison },
    );
    const results = Promise.allSettled([batcher.add('a'), batcher.add('b')]);
    await pass(0);
    await results;
    expect(writes).toBe(1);
  });

  describe('with bounds', () => {
    const bytesOf = (item: string) => item.length;
    const tenBytes = { bytesOf, maxWaiting: { items: 4, bytes: 10 }, turnWithinMs: 1000 };
    /** The end of each: its result, or why it was refused. */
    const told = (results: Promise<string>[]) =>
      results.map((result) => {
        const one: { is?: unknown } = {};
        result.then(
          (is) => (one.is = is),
          (error: unknown) => (one.is = error instanceof BatcherRefusal ? error.reason : error),
        );
        return one;
      });

    it('refuses at once what is more than may wait, by number or by bytes', async () => {
      const { batcher, writes } = controlled(tenBytes);
      const first = told([batcher.add('writing')]);
      await pass(0);
      const byNumber = told(['a', 'b', 'c', 'd', 'e'].map((item) => batcher.add(item)));
      await pass(0);
      expect(byNumber.map(({ is }) => is)).toEqual([undefined, undefined, undefined, undefined, 'full']);
      writes[0]!.finish();
      await pass(0);
      const byBytes = told(['123456', '7890', ''].map((item) => batcher.add(item)));
      await pass(0);
      expect(byBytes.map(({ is }) => is)).toEqual([undefined, 'full', undefined]);
      expect(first).toEqual([{ is: 'writing!' }]);
    });

    it('lets an item that is larger than the room pass when nothing else waits', async () => {
      const { batcher, writes, batches } = controlled({ ...tenBytes, maxBytes: 10 });
      void batcher.add('writing');
      await pass(0);
      const large = batcher.add('larger than the room');
      writes[0]!.finish();
      await pass(0);
      writes[1]!.finish();
      expect(await large).toBe('larger than the room!');
      expect(batches()).toEqual(['writing', 'larger than the room']);
    });

    it('writes no more bytes in a batch than it may, but for one item that is larger by itself', async () => {
      const { batcher, writes, batches } = controlled({
        ...tenBytes,
        maxWaiting: bounds.maxWaiting,
        maxItems: 9,
        maxBytes: 4,
      });
      for (const item of ['aa', 'b', 'cc', 'dd', 'eeeeeeee', 'f']) void batcher.add(item);
      for (let written = 0; written < 4; written++) {
        await pass(10);
        writes[written]!.finish();
      }
      await pass(10);
      expect(batches()).toEqual(['aab', 'ccdd', 'eeeeeeee', 'f']);
    });

    it('refuses what has waited too long for its turn, and never writes it', async () => {
      const { batcher, writes, batches } = controlled(tenBytes);
      void batcher.add('a');
      await pass(0);
      const early = told([batcher.add('b')]);
      await pass(400);
      const later = told([batcher.add('c')]);
      await pass(599);
      expect([...early, ...later]).toEqual([{}, {}]);
      await pass(1);
      expect([...early, ...later]).toEqual([{ is: 'late' }, {}]);
      await pass(400);
      expect(later).toEqual([{ is: 'late' }]);
      const last = told([batcher.add('d')]);
      writes[0]!.finish();
      await pass(10);
      expect(batches()).toEqual(['a', 'd']);
      writes[1]!.finish();
      await pass(1000);
      expect(last).toEqual([{ is: 'd!' }]);
    });

    it('refuses what has waited too long because the process stood still before its turn', async () => {
      const { batcher, writes, batches } = controlled({ ...tenBytes, lingersAlone: true });
      const stood = told([batcher.add('a'), batcher.add('b')]);
      const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1000);
      const after = told([batcher.add('c')]); // which fills the batch
      clock.mockRestore();
      await pass(0);
      expect(stood).toEqual([{ is: 'late' }, { is: 'late' }]);
      expect(batches()).toEqual(['c']);
      writes[0]!.finish();
      await pass(0);
      expect(after).toEqual([{ is: 'c!' }]);
    });

    it('goes on, and is drained, after all that lingered was refused because the process stood still', async () => {
      const { batcher, writes, batches } = controlled({ ...tenBytes, lingersAlone: true });
      const stood = told([batcher.add('a')]);
      const drained = batcher.drain();
      const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1000);
      await pass(10);
      clock.mockRestore();
      expect(stood).toEqual([{ is: 'late' }]);
      await drained;
      expect(writes).toHaveLength(0);
      const next = told([batcher.add('b')]);
      await pass(10);
      expect(batches()).toEqual(['b']);
      writes[0]!.finish();
      await pass(0);
      expect(next).toEqual([{ is: 'b!' }]);
    });

    it('gives the room of what was refused to others', async () => {
      const { batcher } = controlled(tenBytes);
      void batcher.add('a');
      await pass(0);
      const early = told([batcher.add('1234567890')]);
      await pass(1000);
      const later = told([batcher.add('1234567890'), batcher.add('x')]);
      await pass(0);
      expect([...early, ...later].map(({ is }) => is)).toEqual(['late', undefined, 'full']);
    });

    it('answers the callers of a batch whose write does not end, and writes the next only after it', async () => {
      const { batcher, writes, batches } = controlled({ ...tenBytes, answerWithinMs: 500 });
      const hanging = told([batcher.add('a'), batcher.add('b')]);
      await pass(499);
      expect(hanging).toEqual([{}, {}]);
      const next = told([batcher.add('c')]);
      await pass(1);
      expect(hanging).toEqual([{ is: 'unanswered' }, { is: 'unanswered' }]);
      expect(batches()).toEqual(['ab']);
      writes[0]!.finish();
      await pass(10);
      writes[1]!.finish();
      await pass(0);
      expect(next).toEqual([{ is: 'c!' }]);
    });

    it('tells the write when its batch began, also when it is repeated item by item', async () => {
      const begun: number[] = [];
      const batcher = new Batcher<string, string>(
        async (items, begunAt) => {
          begun.push(begunAt);
          await new Promise((resolve) => setTimeout(resolve, 100));
          if (items.length > 1) throw new Poison();
          return items;
        },
        { ...bounds, maxItems: 3, lingerMs: 0, isolate: (error) => error instanceof Poison },
      );
      const before = performance.now();
      const results = told([batcher.add('a'), batcher.add('b')]);
      await pass(400);
      expect(results).toEqual([{ is: 'a' }, { is: 'b' }]);
      expect(begun).toEqual([before, before, before]);
    });

    it('is drained when the last write is done and all that waited was refused', async () => {
      const { batcher, writes } = controlled(tenBytes);
      void batcher.add('a');
      await pass(0);
      const waiting = told([batcher.add('b')]);
      const drained = batcher.drain();
      await pass(1000);
      expect(waiting).toEqual([{ is: 'late' }]);
      writes[0]!.finish();
      await drained;
      expect(writes).toHaveLength(1);
    });
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
