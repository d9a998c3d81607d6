import { beforeEach, describe, expect, it } from 'vitest';
import { well } from './verdict.js';
import { testRooms, unanswered, type Asked } from '../../test/support/test-rooms.js';

const places = 512;

describe('an eighth of the places is kept for origins whose calls are short', () => {
  const { start, ask, askMany, isOpen, openOf, end, prove, fill, pass } = testRooms();
  /** Deliveries for them: together they have room for more calls than there are places. */
  let slow: Asked[];

  beforeEach(() => {
    start(places);
    const urls = Array.from({ length: 50 }, (_, nr) => `http://slow-${nr}/`);
    for (const url of urls) for (const each of askMany(url, 8)) end(each, well, 8000);
    slow = urls.flatMap((url) => askMany(url, 16));
  });

  it('so that slow ones, however many, do not take the last', () => {
    expect(openOf(slow)).toBe(places - places / 8);
  });

  it('and one that has given them back soon until now finds as many as it needs', () => {
    prove('http://quick/');
    expect(openOf(askMany('http://quick/', 8))).toBe(8);
  });

  it('but not when it has begun to hang, or when its calls were not answered', async () => {
    prove('http://hangs/');
    expect(isOpen(ask('http://hangs/'))).toBe(true);
    await pass(300);
    expect(isOpen(ask('http://hangs/'))).toBe(false);
    prove('http://silent/');
    end(ask('http://silent/'), unanswered, 10_000);
    expect(isOpen(ask('http://silent/'))).toBe(false);
  });

  it('and for the first call of one that nothing is known of, until half of them are left', () => {
    const [first, second] = askMany('http://unknown/', 2);
    expect([isOpen(first!), isOpen(second!)]).toEqual([true, false]);
    const others = Array.from({ length: 50 }, (_, nr) => ask(`http://unknown-${nr}/`));
    expect(openOf(others)).toBe(places / 16 - 1);
  });

  it('and a delivery that a slow one may have no place for is held after a moment: what comes after it in the queue does not wait', async () => {
    const more = ask(slow[0]!.url);
    await pass(2500); // it may wait while calls have just ended
    expect(more.answer).toBe('endpoint-busy');
  });

  it('and quick ones, however many, keep none from slow ones and from those that nothing is known of', () => {
    start(places);
    end(ask('http://slow/'), well, 400);
    fill(places - 20); // fewer are left than are kept
    expect(openOf(askMany('http://slow/', 4))).toBe(4);
    expect(isOpen(ask('http://unknown/'))).toBe(true);
  });

  it('unless there are too few', () => {
    start(1);
    expect(isOpen(ask('http://only/'))).toBe(true);
  });
});
