import { beforeEach, describe, expect, it } from 'vitest';
import type { HandedOut } from '../ledger/delivery.js';
import { BodyMemory } from './body-memory.js';
import { LargeBodies } from './large-bodies.js';
import { Stopping } from './until-it-works.js';
import { newDelivery } from '../../test/support/new-delivery.js';

const delivery = (notificationId: string): HandedOut => newDelivery({ notificationId, body: null });

const running = new AbortController().signal;
const origin = 'https://example.org';
const hanging = 'https://hanging.example.org';

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
    memory = new BodyMemory(10, 10);
    bodies = new LargeBodies(sizes, memory, (id) => {
      read.push(id);
      return Promise.resolve(texts.get(id));
    });
  });

  const settled = () => new Promise((resolve) => setImmediate(resolve));
  /** More than there is, which is had only where nothing is kept and nothing waits. */
  const isAllFree = () =>
    [memory.acquire(1000), memory.acquireFor(origin, 1000), memory.acquireFor(hanging, 1000)].every(
      (waits) => waits === undefined,
    );

  it('are read once for the deliveries that are sent at the same time, and kept until the last gives them back', async () => {
    const [one, other] = await Promise.all([
      bodies.borrow(delivery('a'), origin, running),
      bodies.borrow(delivery('a'), origin, running),
    ]);
    expect(one?.toString()).toBe('aaaaaa');
    expect(other).toBe(one);
    bodies.giveBack(delivery('a'), origin);
    expect(await bodies.borrow(delivery('a'), origin, running)).toBe(one);
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'), origin);
    bodies.giveBack(delivery('a'), origin);
    expect(isAllFree()).toBe(true);
  });

  it('are read only when there is memory for them', async () => {
    await bodies.borrow(delivery('a'), origin, running);
    const second = bodies.borrow(delivery('b'), origin, running);
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'), origin);
    expect((await second)?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'), origin);
    expect(isAllFree()).toBe(true);
  });

  it('share the memory of the worker with those of other chunks', async () => {
    const others = new LargeBodies(sizes, memory, () => Promise.resolve(texts.get('b')));
    await bodies.borrow(delivery('a'), origin, running);
    let isRead = false;
    const second = others.borrow(delivery('b'), origin, running).then(() => (isRead = true));
    await settled();
    expect(isRead).toBe(false);
    bodies.giveBack(delivery('a'), origin);
    await second;
  });

  it('are sent alone where one is larger than all memory', async () => {
    await bodies.borrow(delivery('a'), origin, running);
    const huge = bodies.borrow(delivery('huge'), origin, running);
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'), origin);
    expect((await huge)?.length).toBe(50);
    bodies.giveBack(delivery('huge'), origin);
    expect(isAllFree()).toBe(true);
  });

  it('of an origin that keeps them wait for their like, and leave memory for those of others', async () => {
    memory = new BodyMemory(100, 10);
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
    bodies.giveBack(delivery('b'), origin);
    bodies.giveBack(delivery('a'), hanging);
    await second;
    bodies.giveBack(delivery('b'), hanging);
    expect(isAllFree()).toBe(true);
  });

  it('count for the origin that keeps them, not for the one that they were read for', async () => {
    memory = new BodyMemory(100, 10);
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    await bodies.borrow(delivery('a'), origin, running);
    await bodies.borrow(delivery('a'), hanging, running);
    bodies.giveBack(delivery('a'), origin);
    expect((await bodies.borrow(delivery('b'), origin, running))?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'), origin);
    bodies.giveBack(delivery('a'), hanging);
    expect(isAllFree()).toBe(true);
  });

  it('count once for an origin, however many calls send them there', async () => {
    memory = new BodyMemory(100, 10);
    bodies = new LargeBodies(sizes, memory, (id) => Promise.resolve(texts.get(id)));
    const [one, other] = await Promise.all([
      bodies.borrow(delivery('a'), origin, running),
      bodies.borrow(delivery('a'), origin, running),
    ]);
    expect(other).toBe(one);
    bodies.giveBack(delivery('a'), origin);
    let isSent = false;
    const second = bodies.borrow(delivery('b'), origin, running).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false); // the other call still sends the first
    bodies.giveBack(delivery('a'), origin);
    await second;
    bodies.giveBack(delivery('b'), origin);
    expect(isAllFree()).toBe(true);
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
    bodies.giveBack(delivery('a'), origin);
    expect(isAllFree()).toBe(true);
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
    bodies.giveBack(delivery('a'), origin);
    await refused;
    expect(read).toEqual(['a']);
    expect(isAllFree()).toBe(true);
  });

  it('are missing when the notification is past its retention, before or after its size was known', async () => {
    expect(await bodies.borrow(delivery('unknown'), origin, running)).toBeUndefined();
    expect(await bodies.borrow(delivery('gone'), origin, running)).toBeUndefined();
    expect(isAllFree()).toBe(true);
  });
});
