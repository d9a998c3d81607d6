import { beforeEach, describe, expect, it } from 'vitest';
import type { HandedOut } from '../ledger/delivery.js';
import { BodyMemory } from './body-memory.js';
import { LargeBodies } from './large-bodies.js';
import { Stopping } from './until-it-works.js';
import { newDelivery } from '../../test/support/new-delivery.js';

const delivery = (notificationId: string): HandedOut => newDelivery({ notificationId, body: null });

const running = new AbortController().signal;
const origin = { origin: 'https://example.org', isProven: true };
const hanging = { origin: 'https://hanging.example.org', isProven: true };
const unknown = (nr: number) => ({ origin: `https://unknown-${nr}.example.org`, isProven: false });

describe('the large texts of a chunk', () => {
  const texts = new Map([
    ['a', Buffer.from('aaaaaa')],
    ['b', Buffer.from('bbbbbb')],
    ['huge', Buffer.alloc(50)],
  ]);
  const sizes = new Map([
    ['a', 6],
    ['b', 6],
    ['huge', 50],
    ['gone', 6],
  ]);
  let read: string[];
  let memory: BodyMemory;
  let bodies: LargeBodies;

  beforeEach(() => {
    read = [];
    memory = new BodyMemory(10, { origin: 10, unproven: 10, unprovenOrigin: 10 });
    bodies = new LargeBodies(sizes, memory, (id) => {
      read.push(id);
      return Promise.resolve(texts.get(id));
    });
  });

  const settled = () => new Promise((resolve) => setImmediate(resolve));
  /** More than there is, which is had only where nothing is kept and nothing waits. */
  const isAllFree = async () => {
    let isHad = false;
    const all = [
      Promise.resolve(memory.acquire(1000)),
      ...[origin, hanging].map((each) => memory.acquireFor(each.origin, true, 1000)),
      memory.acquireFor(origin.origin, false, 1000),
    ];
    void Promise.all(all).then(() => (isHad = true));
    await settled();
    return isHad;
  };

  it('are read once for the deliveries that are sent at the same time, and kept until the last gives them back', async () => {
    const [one, other] = await Promise.all([
      bodies.borrow(delivery('a'), origin, running),
      bodies.borrow(delivery('a'), origin, running),
    ]);
    expect(one?.toString()).toBe('aaaaaa');
    expect(other).toBe(one);
    bodies.giveBack(delivery('a'), origin.origin);
    expect(await bodies.borrow(delivery('a'), origin, running)).toBe(one);
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'), origin.origin);
    bodies.giveBack(delivery('a'), origin.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('are read only when there is memory for them', async () => {
    await bodies.borrow(delivery('a'), origin, running);
    const second = bodies.borrow(delivery('b'), origin, running);
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'), origin.origin);
    expect((await second)?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'), origin.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('share the memory of the worker with those of other chunks', async () => {
    const others = new LargeBodies(sizes, memory, () => Promise.resolve(texts.get('b')));
    await bodies.borrow(delivery('a'), origin, running);
    let isRead = false;
    const second = others.borrow(delivery('b'), origin, running).then(() => (isRead = true));
    await settled();
    expect(isRead).toBe(false);
    bodies.giveBack(delivery('a'), origin.origin);
    await second;
  });

  it('are sent alone where one is larger than all memory', async () => {
    await bodies.borrow(delivery('a'), origin, running);
    const huge = bodies.borrow(delivery('huge'), origin, running);
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'), origin.origin);
    expect((await huge)?.length).toBe(50);
    bodies.giveBack(delivery('huge'), origin.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of an origin that keeps them wait for their like, and leave memory for those of others', async () => {
    memory = new BodyMemory(100, { origin: 10, unproven: 10, unprovenOrigin: 10 });
    bodies = new LargeBodies(sizes, memory, (id) => {
      read.push(id);
      return Promise.resolve(texts.get(id));
    });
    await bodies.borrow(delivery('a'), hanging, running);
    let isSent = false;
    const second = bodies.borrow(delivery('b'), hanging, running).then(() => (isSent = true));
    await settled();
    expect([isSent, read]).toEqual([false, ['a']]);
    expect((await bodies.borrow(delivery('b'), origin, running))?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'), origin.origin);
    bodies.giveBack(delivery('a'), hanging.origin);
    await second;
    bodies.giveBack(delivery('b'), hanging.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('count for the origin that keeps them, not for the one that they were read for', async () => {
    memory = new BodyMemory(100, { origin: 10, unproven: 10, unprovenOrigin: 10 });
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    await bodies.borrow(delivery('a'), origin, running);
    await bodies.borrow(delivery('a'), hanging, running);
    bodies.giveBack(delivery('a'), origin.origin);
    expect((await bodies.borrow(delivery('b'), origin, running))?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'), origin.origin);
    bodies.giveBack(delivery('a'), hanging.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('count once for an origin, however many calls send them there', async () => {
    memory = new BodyMemory(100, { origin: 10, unproven: 10, unprovenOrigin: 10 });
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    const [one, other] = await Promise.all([
      bodies.borrow(delivery('a'), origin, running),
      bodies.borrow(delivery('a'), origin, running),
    ]);
    expect(other).toBe(one);
    bodies.giveBack(delivery('a'), origin.origin);
    let isSent = false;
    const second = bodies.borrow(delivery('b'), origin, running).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false); // the other call still sends the first
    bodies.giveBack(delivery('a'), origin.origin);
    await second;
    bodies.giveBack(delivery('b'), origin.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of endpoints that are not proven wait for their like, however many these are, and leave memory for those of proven ones', async () => {
    memory = new BodyMemory(100, { origin: 50, unproven: 12, unprovenOrigin: 12 });
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    await bodies.borrow(delivery('a'), unknown(1), running);
    await bodies.borrow(delivery('a'), unknown(2), running);
    let isSent = false;
    const third = bodies.borrow(delivery('b'), unknown(3), running).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false);
    expect((await bodies.borrow(delivery('huge'), origin, running))?.length).toBe(50);
    bodies.giveBack(delivery('huge'), origin.origin);
    bodies.giveBack(delivery('a'), unknown(1).origin);
    await third;
    bodies.giveBack(delivery('a'), unknown(2).origin);
    bodies.giveBack(delivery('b'), unknown(3).origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of an endpoint that is not proven leave memory for those of others that are not, also while they wait', async () => {
    memory = new BodyMemory(100, { origin: 50, unproven: 12, unprovenOrigin: 6 });
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    await bodies.borrow(delivery('a'), unknown(1), running);
    let isSent = false;
    const second = bodies.borrow(delivery('b'), unknown(1), running).then(() => (isSent = true));
    expect((await bodies.borrow(delivery('b'), unknown(2), running))?.toString()).toBe('bbbbbb');
    await settled();
    expect(isSent).toBe(false);
    bodies.giveBack(delivery('a'), unknown(1).origin);
    await second;
    bodies.giveBack(delivery('b'), unknown(1).origin);
    bodies.giveBack(delivery('b'), unknown(2).origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of an endpoint that was proven meanwhile do not wait for those that it was sent before', async () => {
    memory = new BodyMemory(100, { origin: 6, unproven: 6, unprovenOrigin: 6 });
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    await bodies.borrow(delivery('a'), { ...origin, isProven: false }, running);
    expect((await bodies.borrow(delivery('b'), origin, running))?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('a'), origin.origin);
    bodies.giveBack(delivery('b'), origin.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('are read again after reading failed, and a failure keeps no memory', async () => {
    let fails = 2;
    bodies = new LargeBodies(sizes, memory, () =>
      fails-- > 0 ? Promise.reject(new Error('down')) : Promise.resolve(texts.get('a')),
    );
    await expect(
      Promise.all([bodies.borrow(delivery('a'), origin, running), bodies.borrow(delivery('a'), origin, running)]),
    ).rejects.toThrow('down');
    await settled();
    await expect(bodies.borrow(delivery('a'), origin, running)).rejects.toThrow('down');
    expect((await bodies.borrow(delivery('a'), origin, running))?.toString()).toBe('aaaaaa');
    bodies.giveBack(delivery('a'), origin.origin);
    expect(await isAllFree()).toBe(true);
  });

  it('are not read once the worker stops, and keep no memory', async () => {
    const stopping = new AbortController();
    await bodies.borrow(delivery('a'), origin, stopping.signal);
    const waiting = [
      bodies.borrow(delivery('b'), origin, stopping.signal),
      bodies.borrow(delivery('b'), origin, stopping.signal),
    ];
    const refused = Promise.all(waiting.map((each) => expect(each).rejects.toThrow(Stopping)));
    stopping.abort(new Stopping());
    bodies.giveBack(delivery('a'), origin.origin);
    await refused;
    expect(read).toEqual(['a']);
    expect(await isAllFree()).toBe(true);
  });

  it('are missing when the notification is past its retention, before or after its size was known', async () => {
    expect(await bodies.borrow(delivery('unknown'), origin, running)).toBeUndefined();
    expect(await bodies.borrow(delivery('gone'), origin, running)).toBeUndefined();
    expect(await isAllFree()).toBe(true);
  });
});
