import { beforeEach, describe, expect, it } from '@jest/globals';
import type { HandedOut } from '../ledger/delivery.js';
import { LargeBodies } from './large-bodies.js';
import { Semaphore } from './semaphore.js';

const delivery = (notificationId: string): HandedOut => ({
  notificationId,
  subscriptionId: 'subscription',
  generation: 1,
  attempts: 0,
  failures: 0,
  replays: 0,
  expiresAt: null,
  body: null,
});

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
    const [one, other] = await Promise.all([bodies.take(delivery('a')), bodies.take(delivery('a'))]);
    expect(one?.toString()).toBe('aaaaaa');
    expect(other).toBe(one);
    bodies.giveBack(delivery('a'));
    expect(await bodies.take(delivery('a'))).toBe(one);
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'));
    bodies.giveBack(delivery('a'));
    expect(isAllFree()).toBe(true);
  });

  it('are read only when there is memory for them', async () => {
    await bodies.take(delivery('a'));
    const second = bodies.take(delivery('b'));
    await settled();
    expect(read).toEqual(['a']);
    bodies.giveBack(delivery('a'));
    expect((await second)?.toString()).toBe('bbbbbb');
    bodies.giveBack(delivery('b'));
    expect(isAllFree()).toBe(true);
  });

  it('share the memory of the worker with those of other chunks', async () => {
    const others = new LargeBodies(sizes, memory, () => Promise.resolve(texts.get('b')));
    await bodies.take(delivery('a'));
    let isRead = false;
    const second = others.take(delivery('b')).then(() => (isRead = true));
    await settled();
    expect(isRead).toBe(false);
    bodies.giveBack(delivery('a'));
    await second;
  });

  it('are sent alone where one is larger than all memory', async () => {
    await bodies.take(delivery('a'));
    const huge = bodies.take(delivery('huge'));
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
    await expect(Promise.all([bodies.take(delivery('a')), bodies.take(delivery('a'))])).rejects.toThrow('down');
    await settled();
    await expect(bodies.take(delivery('a'))).rejects.toThrow('down');
    expect((await bodies.take(delivery('a')))?.toString()).toBe('aaaaaa');
    bodies.giveBack(delivery('a'));
    expect(isAllFree()).toBe(true);
  });

  it('are missing when the notification is past its retention, before or after its size was known', async () => {
    expect(await bodies.take(delivery('unknown'))).toBeUndefined();
    expect(await bodies.take(delivery('gone'))).toBeUndefined();
    expect(isAllFree()).toBe(true);
  });
});
