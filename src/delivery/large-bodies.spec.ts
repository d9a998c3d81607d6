import { beforeEach, describe, expect, it } from 'vitest';
import type { HandedOut } from '../ledger/delivery.js';
import { LargeBodies } from './large-bodies.js';
import { Semaphore } from './semaphore.js';
import { Stopping } from './until-it-works.js';
import { newDelivery } from '../../test/support/new-delivery.js';

const delivery = (notificationId: string): HandedOut => newDelivery({ notificationId, body: null });

const running = new AbortController().signal;

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
  let memory: Semaphore;
  let bodies: LargeBodies;

  beforeEach(() => {
    read = [];
    memory = new Semaphore(10);
    bodies = new LargeBodies(sizes, memory, (id) => {
      read.push(id);
      return Promise.resolve(texts.get(id));
    });
  });

  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const isAllFree = () => memory.acquire(10) === undefined;

  it('are read once for the deliveries that are sent at the same time, and kept until the last gives them back', async () => {
    const [one, other] = await Promise.all([
      bodies.borrow(delivery('a'), running),
      bodies.borrow(delivery('a'), running),
    ]);
    expect(one?.toString()).toBe('aaaaaa');
    expect(other).toBe(one);
    bodies.giveBack(delivery('a'));
    expect(await bodies.borrow(delivery('a'), running)).toBe(one);
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'));
    bodies.giveBack(delivery('a'));
    expect(isAllFree()).toBe(true);
  });

  it('are read only when there is memory for them', async () => {
    await bodies.borrow(delivery('a'), running);
    const second = bodies.borrow(delivery('b'), running);
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'));
    expect((await second)?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'));
    expect(isAllFree()).toBe(true);
  });

  it('share the memory of the worker with those of other chunks', async () => {
    const others = new LargeBodies(sizes, memory, () => Promise.resolve(texts.get('b')));
    await bodies.borrow(delivery('a'), running);
    let isRead = false;
    const second = others.borrow(delivery('b'), running).then(() => (isRead = true));
    await settled();
    expect(isRead).toBe(false);
    bodies.giveBack(delivery('a'));
    await second;
  });

  it('are sent alone where one is larger than all memory', async () => {
    await bodies.borrow(delivery('a'), running);
    const huge = bodies.borrow(delivery('huge'), running);
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'));
    expect((await huge)?.length).toBe(50);
    bodies.giveBack(delivery('huge'));
    expect(isAllFree()).toBe(true);
  });

  it('are read again after reading failed, and a failure keeps no memory', async () => {
    let fails = 2;
    bodies = new LargeBodies(sizes, memory, () =>
      fails-- > 0 ? Promise.reject(new Error('down')) : Promise.resolve(texts.get('a')),
    );
    await expect(
      Promise.all([bodies.borrow(delivery('a'), running), bodies.borrow(delivery('a'), running)]),
    ).rejects.toThrow('down');
    await settled();
    await expect(bodies.borrow(delivery('a'), running)).rejects.toThrow('down');
    expect((await bodies.borrow(delivery('a'), running))?.toString()).toBe('aaaaaa');
    bodies.giveBack(delivery('a'));
    expect(isAllFree()).toBe(true);
  });

  it('are not read once the worker stops, and keep no memory', async () => {
    const stopping = new AbortController();
    await bodies.borrow(delivery('a'), stopping.signal);
    const waiting = [bodies.borrow(delivery('b'), stopping.signal), bodies.borrow(delivery('b'), stopping.signal)];
    const refused = Promise.all(waiting.map((each) => expect(each).rejects.toThrow(Stopping)));
    stopping.abort(new Stopping());
    bodies.giveBack(delivery('a'));
    await refused;
    expect(read).toEqual(['a']);
    expect(isAllFree()).toBe(true);
  });

  it('are missing when the notification is past its retention, before or after its size was known', async () => {
    expect(await bodies.borrow(delivery('unknown'), running)).toBeUndefined();
    expect(await bodies.borrow(delivery('gone'), running)).toBeUndefined();
    expect(isAllFree()).toBe(true);
  });
});
