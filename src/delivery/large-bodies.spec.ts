import { beforeEach, describe, expect, it } from 'vitest';
import { BodyMemory, type BodyShares } from './body-memory.js';
import { LargeBodies, type BorrowedText, type Borrower } from './large-bodies.js';
import { Stopping } from './until-it-works.js';
import { settled } from '../../test/support/settled.js';

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
    within({ origin: 10, unproven: 10, unprovenOrigin: 10 }, 10);
  });

  const within = (shares: BodyShares, bytes = 100) => {
    memory = new BodyMemory(bytes, shares);
    bodies = new LargeBodies(sizes, memory, (id) => {
      read.push(id);
      return Promise.resolve(texts.get(id));
    });
  };
  /** By notification and origin. */
  const borrowed = new Map<string, BorrowedText[]>();
  const borrow = async (
    notificationId: string,
    borrower: Borrower,
    stopping = running,
  ): Promise<Buffer | undefined> => {
    const loan = await bodies.borrow({ notificationId }, borrower, stopping);
    const key = `${notificationId} ${borrower.origin}`;
    if (loan) borrowed.set(key, [...(borrowed.get(key) ?? []), loan]);
    return loan?.text;
  };
  const giveBack = (notificationId: string, { origin: address }: Borrower) =>
    borrowed.get(`${notificationId} ${address}`)!.pop()!.giveBack();

  /** More than there is, which is had only where nothing is kept and nothing waits. */
  const isAllFree = async () => {
    let isHad = false;
    const all = [
      memory.all.acquire(1000),
      memory.unproven.acquire(1000),
      ...[origin, hanging, { ...origin, isProven: false }].map((each) =>
        memory.of(each.origin, each.isProven).acquire(1000),
      ),
    ];
    void Promise.all(all.map((each) => Promise.resolve(each))).then(() => (isHad = true));
    await settled();
    return isHad;
  };

  it('are read once for the deliveries that are sent at the same time, and kept until the last gives them back', async () => {
    const [one, other] = await Promise.all([borrow('a', origin), borrow('a', origin)]);
    expect(one?.toString()).toBe('aaaaaa');
    expect(other).toBe(one);
    giveBack('a', origin);
    expect(await borrow('a', origin)).toBe(one);
    expect(read).toEqual(['a']);
    giveBack('a', origin);
    giveBack('a', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('are read only when there is memory for them', async () => {
    await borrow('a', origin);
    const second = borrow('b', origin);
    await settled();
    expect(read).toEqual(['a']);
    giveBack('a', origin);
    expect((await second)?.toString()).toBe('bbbbbb');
    giveBack('b', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('share the memory of the worker with those of other chunks', async () => {
    const others = new LargeBodies(sizes, memory, () => Promise.resolve(texts.get('b')));
    await borrow('a', origin);
    let isRead = false;
    const second = others.borrow({ notificationId: 'b' }, origin, running).then(() => (isRead = true));
    await settled();
    expect(isRead).toBe(false);
    giveBack('a', origin);
    await second;
  });

  it('are sent alone where one is larger than all memory', async () => {
    await borrow('a', origin);
    const huge = borrow('huge', origin);
    await settled();
    expect(read).toEqual(['a']);
    giveBack('a', origin);
    expect((await huge)?.length).toBe(50);
    giveBack('huge', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of an origin that keeps them wait for their like, and leave memory for those of others', async () => {
    within({ origin: 10, unproven: 10, unprovenOrigin: 10 });
    await borrow('a', hanging);
    let isSent = false;
    const second = borrow('b', hanging).then(() => (isSent = true));
    await settled();
    expect([isSent, read]).toEqual([false, ['a']]);
    expect((await borrow('b', origin))?.toString()).toBe('bbbbbb');
    giveBack('b', origin);
    giveBack('a', hanging);
    await second;
    giveBack('b', hanging);
    expect(await isAllFree()).toBe(true);
  });

  it('count for the origin that keeps them, not for the one that they were read for', async () => {
    within({ origin: 10, unproven: 10, unprovenOrigin: 10 });
    await borrow('a', origin);
    await borrow('a', hanging);
    giveBack('a', origin);
    expect((await borrow('b', origin))?.toString()).toBe('bbbbbb');
    giveBack('b', origin);
    giveBack('a', hanging);
    expect(await isAllFree()).toBe(true);
  });

  it('count once for an origin, however many calls send them there', async () => {
    within({ origin: 10, unproven: 10, unprovenOrigin: 10 });
    const [one, other] = await Promise.all([borrow('a', origin), borrow('a', origin)]);
    expect(other).toBe(one);
    giveBack('a', origin);
    let isSent = false;
    const second = borrow('b', origin).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false); // the other call still sends the first
    giveBack('a', origin);
    await second;
    giveBack('b', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of endpoints that are not proven wait for their like, however many these are, and leave memory for those of proven ones', async () => {
    within({ origin: 50, unproven: 12, unprovenOrigin: 12 });
    await borrow('a', unknown(1));
    await borrow('b', unknown(2));
    let isSent = false;
    const third = borrow('huge', unknown(3)).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false);
    expect((await borrow('huge', origin))?.length).toBe(50);
    giveBack('huge', origin);
    giveBack('a', unknown(1));
    giveBack('b', unknown(2));
    await third;
    giveBack('huge', unknown(3));
    expect(await isAllFree()).toBe(true);
  });

  it('of an endpoint that is not proven leave memory for those of others that are not, also while they wait', async () => {
    within({ origin: 50, unproven: 12, unprovenOrigin: 6 });
    await borrow('a', unknown(1));
    let isSent = false;
    const second = borrow('b', unknown(1)).then(() => (isSent = true));
    expect((await borrow('b', unknown(2)))?.toString()).toBe('bbbbbb');
    await settled();
    expect(isSent).toBe(false);
    giveBack('a', unknown(1));
    await second;
    giveBack('b', unknown(1));
    giveBack('b', unknown(2));
    expect(await isAllFree()).toBe(true);
  });

  it('count once for all endpoints that are not proven, however many calls send them there', async () => {
    within({ origin: 50, unproven: 6, unprovenOrigin: 6 });
    await borrow('a', unknown(1));
    expect((await borrow('a', unknown(2)))?.toString()).toBe('aaaaaa');
    giveBack('a', unknown(1));
    let isSent = false;
    const other = borrow('b', unknown(1)).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false);
    giveBack('a', unknown(2));
    await other;
    giveBack('b', unknown(1));
    expect(await isAllFree()).toBe(true);
  });

  it('of a proven endpoint do not wait because the same text waits for one of its origin that is not proven', async () => {
    within({ origin: 50, unproven: 6, unprovenOrigin: 6 });
    await borrow('a', unknown(1));
    const waiting = borrow('b', { ...origin, isProven: false });
    expect((await borrow('b', origin))?.toString()).toBe('bbbbbb');
    giveBack('b', origin);
    giveBack('a', unknown(1));
    await waiting;
    giveBack('b', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('of an endpoint that was proven meanwhile do not wait for those that it was sent before', async () => {
    within({ origin: 6, unproven: 6, unprovenOrigin: 6 });
    await borrow('a', { ...origin, isProven: false });
    expect((await borrow('b', origin))?.toString()).toBe('bbbbbb');
    giveBack('a', origin);
    giveBack('b', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('are read again after reading failed, and a failure keeps no memory', async () => {
    let fails = 2;
    bodies = new LargeBodies(sizes, memory, () =>
      fails-- > 0 ? Promise.reject(new Error('down')) : Promise.resolve(texts.get('a')),
    );
    await expect(Promise.all([borrow('a', origin), borrow('a', origin)])).rejects.toThrow('down');
    await settled();
    await expect(borrow('a', origin)).rejects.toThrow('down');
    expect((await borrow('a', origin))?.toString()).toBe('aaaaaa');
    giveBack('a', origin);
    expect(await isAllFree()).toBe(true);
  });

  it('are not read once the worker stops, and keep no memory', async () => {
    const stopping = new AbortController();
    await borrow('a', origin, stopping.signal);
    const waiting = [borrow('b', origin, stopping.signal), borrow('b', origin, stopping.signal)];
    const refused = Promise.all(waiting.map((each) => expect(each).rejects.toThrow(Stopping)));
    stopping.abort(new Stopping());
    giveBack('a', origin);
    await refused;
    expect(read).toEqual(['a']);
    expect(await isAllFree()).toBe(true);
  });

  it('are missing when the notification is past its retention, before or after its size was known', async () => {
    expect(await borrow('unknown', origin)).toBeUndefined();
    expect(await borrow('gone', origin)).toBeUndefined();
    expect(await isAllFree()).toBe(true);
  });
});
