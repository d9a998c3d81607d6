import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Catalogue } from './catalogue.service.js';
import { KeptAnswers } from './kept-answers.service.js';
import type { LongList } from './long-json.js';

class Reply {
  readonly raw = Object.assign(new EventEmitter(), { destroyed: false });
  type(): this {
    return this;
  }
  /** Its caller has taken it, or is gone. */
  end(): void {
    this.raw.emit('close');
  }
}

type Made = LongList<object> | Promise<LongList<object>>;

describe('a long list', () => {
  let edition: number;
  let kept: KeptAnswers;
  let items: object[];
  let presented: number;
  beforeEach(() => {
    [edition, presented] = [1, 0];
    const catalogue = {
      get edition() {
        return edition;
      },
      refresh: () => Promise.resolve(),
    };
    kept = new KeptAnswers(catalogue as Catalogue);
    items = Array.from({ length: 55 }, (_, nr) => ({ nr, text: 'é"' }));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    kept.onModuleDestroy();
  });

  const list = (): LongList<object> => ({
    before: '{"items":[',
    items,
    present: (item) => {
      presented++;
      return item;
    },
    after: ']}',
  });
  const ask = (key = 'all', reply = new Reply(), caller = 'caller', made: () => Made = list) =>
    kept.answer(key, caller, reply as unknown as FastifyReply, made);
  /** Its caller has read all of it at once. */
  const take = async (key = 'all', made: () => Made = list) => {
    const reply = new Reply();
    const body = await ask(key, reply, 'caller', made);
    reply.end();
    return body;
  };
  /** One whose making takes until it is ended. */
  function slowly() {
    let times = 0;
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    let made!: () => Promise<LongList<object>>;
    const begun = new Promise<void>((resolve) => {
      made = async () => {
        times++;
        resolve();
        await ended;
        return list();
      };
    });
    return { list: made, begun, end, times: () => times };
  }

  it('has the JSON that it would have as a whole, whatever its length', async () => {
    for (const length of [0, 1, 20, 21, 55]) {
      edition++;
      items = Array.from({ length }, (_, nr) => ({ nr, text: 'é"' }));
      expect((await ask()).toString()).toBe(JSON.stringify({ items }));
    }
  });

  it('is made once for all who ask while nothing changes, and answered with the same bytes', async () => {
    const bodies = await Promise.all([ask(), ask()]);
    bodies.push(await ask());
    expect(new Set(bodies).size).toBe(1);
    expect(presented).toBe(55);
  });

  it('is made anew after a change, also for one who asks while the one before is made', async () => {
    const before = ask();
    await Promise.resolve();
    edition++;
    items = [{ changed: true }];
    expect((await ask()).toString()).toBe('{"items":[{"changed":true}]}');
    await before;
  });

  it('is made once for all who ask while another is made, whatever changes meanwhile', async () => {
    const slow = slowly();
    const first = take('all', slow.list);
    await slow.begun;
    const asked = [];
    for (let nr = 0; nr < 5; nr++) {
      edition++;
      items = [{ nr }];
      asked.push(take());
      await new Promise(setImmediate);
    }
    slow.end();
    await first;
    const bodies = await Promise.all(asked);
    expect(bodies.map(String)).toEqual(Array(5).fill('{"items":[{"nr":4}]}'));
    expect(new Set([...bodies, await take()]).size).toBe(1);
    edition++;
    expect(await take()).not.toBe(bodies[0]);
  });

  it('is not made where all who asked for it are gone before it is begun', async () => {
    const slow = slowly();
    const first = take('slow', slow.list);
    await slow.begun;
    const gone = Object.assign(new Reply(), { raw: Object.assign(new EventEmitter(), { destroyed: true }) });
    const asked = [ask('left', gone), ask('all', gone, 'another')];
    await new Promise(setImmediate);
    asked.push(ask('all'));
    slow.end();
    await Promise.all([first, ...asked]);
    expect((await ask('all')).toString()).toBe(JSON.stringify({ items }));
    expect(presented).toBe(2 * 55);
    expect((await ask('left')).toString()).toBe(JSON.stringify({ items }));
  });

  it('is made one after the other where it depends on more than the catalogue', async () => {
    const order: string[] = [];
    const follow = (key: string): LongList<object> => ({ ...list(), present: (item) => (order.push(key), item) });
    const answer = (key: string) =>
      kept.answer(key, 'caller', new Reply() as unknown as FastifyReply, () => follow(key));
    // Each part takes longer than one may keep the event loop.
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 20));
    await Promise.all([answer('one'), answer('two')]);
    expect(order).toEqual([...Array(55).fill('one'), ...Array(55).fill('two')]);
  });

  it('is refused while eight others are to be made, as by callers that name this server differently each time', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, (_, nr) => ask(`list of host ${nr}`, new Reply(), `caller ${nr}`)),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(8);
    expect(presented).toBe(8 * 55);
    expect(outcomes.at(-1)).toMatchObject({ reason: { status: 503, extra: { headers: { 'retry-after': '5' } } } });
    expect((await ask('list of host 100')).toString()).toBe(JSON.stringify({ items }));
  });

  it('is refused to a caller of whom two others are to be made, and made for everybody else', async () => {
    const outcomes = Promise.allSettled(Array.from({ length: 100 }, (_, nr) => ask(`list of host ${nr}`)));
    expect((await ask('all', new Reply(), 'another')).toString()).toBe(JSON.stringify({ items }));
    const refused = (await outcomes).filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(98);
    expect(refused[0]).toMatchObject({ reason: { status: 429, extra: { headers: { 'retry-after': '5' } } } });
    await ask('list of host 100');
  });

  it('is made once however many others are asked for, as long as somebody goes on to ask for it', async () => {
    const first = await ask();
    for (let nr = 0; nr < 10; nr++) {
      await ask(`list of host ${nr}`, new Reply(), 'another');
      expect(await ask()).toBe(first);
    }
  });

  it('leaves the event loop to others between its parts', async () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 20));
    const made: number[] = [];
    const others = () => {
      made.push(presented);
      if (presented < 55) setImmediate(others);
    };
    const asked = ask();
    setImmediate(others);
    await asked;
    expect(made.filter((count) => count > 0 && count < 55)).not.toEqual([]);
  });

  it('is tried again where it could not be made', async () => {
    items = [{ big: 1n }];
    await expect(ask()).rejects.toThrow('BigInt');
    items = [{ small: 1 }];
    expect((await ask()).toString()).toBe('{"items":[{"small":1}]}');
  });

  it('is forgotten ten seconds after somebody asked for it, and nobody is sent it any more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const first = await take();
    vi.advanceTimersByTime(9999);
    const reply = new Reply();
    expect(await ask('all', reply)).toBe(first);
    vi.advanceTimersByTime(60_000);
    expect(await take()).toBe(first);
    vi.advanceTimersByTime(60_000);
    reply.end();
    vi.advanceTimersByTime(9999);
    expect(await take()).toBe(first);
    vi.advanceTimersByTime(10_000);
    expect(await take()).not.toBe(first);
  });

  it('is made once also where that takes longer than it is kept', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const slow = slowly();
    const asked = [take('all', slow.list)];
    await slow.begun;
    for (let nr = 0; nr < 3; nr++) {
      vi.advanceTimersByTime(12_000);
      asked.push(take('all', slow.list));
      await new Promise(setImmediate);
    }
    vi.advanceTimersByTime(12_000);
    slow.end();
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    vi.advanceTimersByTime(9999);
    asked.push(take('all', slow.list));
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    expect(slow.times()).toBe(1);
  });

  it('is refused while too many bytes of others wait for their callers to take them, and answered to any number of callers with the same', async () => {
    Object.assign(kept, { mostBytesLent: 256 });
    items = [{ text: 'x'.repeat(90) }];
    const replies = [1, 2].map(() => new Reply());
    await ask('one', replies[0]);
    await ask('two', replies[1]);
    await expect(ask('three')).rejects.toMatchObject({ status: 503, extra: { headers: { 'retry-after': '5' } } });
    for (let nr = 0; nr < 5; nr++) await ask('one');
    replies[1]!.end();
    await ask('three');
  });

  it('is refused before it is made where there was no room for it when it was made last', async () => {
    Object.assign(kept, { mostBytesLent: 256 });
    items = [{ text: 'x'.repeat(90) }];
    const replies = [1, 2].map(() => new Reply());
    await take('three');
    await ask('one', replies[0]);
    await ask('two', replies[1]);
    edition++;
    presented = 0;
    for (let nr = 0; nr < 3; nr++) await expect(ask('three')).rejects.toMatchObject({ status: 503 });
    expect(presented).toBe(0);
    replies[0]!.end();
    expect((await ask('three')).toString()).toBe(JSON.stringify({ items }));
  });

  it('is refused before it is made however many short ones were made since', async () => {
    const long = { ...list(), items: [{ text: 'x'.repeat(900 * 1024) }] };
    const short = { ...list(), items: [] };
    Object.assign(kept, { mostBytesLent: 1024 * 1024 });
    await take('long', () => long);
    for (let nr = 0; nr < 20; nr++) await take(`short ${nr}`, () => short);
    await ask('other', new Reply(), 'another', () => ({ ...long, before: '{"others":[' }));
    edition++;
    presented = 0;
    await expect(ask('long', new Reply(), 'caller', () => long)).rejects.toMatchObject({ status: 503 });
    expect(presented).toBe(0);
  });

  it('is kept for the next who asks as far as there is room for it, the one that was asked for last the longest', async () => {
    Object.assign(kept, { mostBytesKept: 256 });
    items = [{ text: 'x'.repeat(90) }];
    const [one, two] = [await take('one'), await take('two')];
    expect(await take('one')).toBe(one);
    await take('three');
    expect(await take('one')).toBe(one);
    expect(await take('two')).not.toBe(two);
  });

  it('is made once for all who ask while it is made, however long it is, also where the first of them has left', async () => {
    Object.assign(kept, { mostBytesKept: 50 });
    const slow = slowly();
    const [first, second] = [new Reply(), new Reply()];
    const asked = [ask('all', first, 'caller', slow.list), ask('all', second)];
    await slow.begun;
    first.raw.destroyed = true;
    slow.end();
    const [, body] = await Promise.all(asked);
    await new Promise(setImmediate);
    expect(await ask()).toBe(body);
  });

  it('is made once for all who ask before it is begun, however many others are asked for meanwhile', async () => {
    const slow = slowly();
    const asked = [take('slow', slow.list)];
    await slow.begun;
    asked.push(ask('all'));
    for (let nr = 0; nr < 4; nr++) asked.push(ask(`list of host ${nr}`, new Reply(), `caller ${nr}`));
    await new Promise(setImmediate);
    asked.push(ask('all', new Reply(), 'another'));
    slow.end();
    const bodies = await Promise.all(asked);
    expect(bodies.at(-1)).toBe(bodies[1]);
  });

  it('is kept as long as somebody is sent it, however long it is', async () => {
    Object.assign(kept, { mostBytesKept: 50 });
    items = [{ text: 'x'.repeat(90) }];
    const reply = new Reply();
    const body = await ask('all', reply);
    expect(await ask('all', reply)).toBe(body);
    reply.end();
    expect(await ask()).not.toBe(body);
  });
});
