import { beforeEach, describe, expect, it } from 'vitest';
import type { Place } from './room.js';
import { well } from './verdict.js';
import { troubled, testRooms, type Asked } from '../../test/support/test-rooms.js';
import { settled } from '../../test/support/settled.js';

describe('deliveries in line', () => {
  const { at, start, ask, askMany, isOpen, openOf, end, round, prove, fill, pass } = testRooms();
  beforeEach(() => start());

  it('get in when a call ends, first come first', async () => {
    const open = askMany('http://a/', 8);
    const waiting = askMany('http://a/', 20);
    expect(openOf(waiting)).toBe(0);
    end(open[0]!);
    await settled();
    expect(waiting.map(isOpen).slice(0, 3)).toEqual([true, true, false]); // a window of nine
  });

  it('are held after 250 ms at an endpoint that hangs', async () => {
    askMany('http://a/', 8);
    const waiting = ask('http://a/');
    await pass(200);
    expect(waiting.answer).toBeUndefined();
    await pass(50);
    expect(waiting.answer).toBe('endpoint-busy');
  });

  it('wait on where the endpoint is late, but will get to them within two seconds at the pace of its last calls', async () => {
    prove('http://other/');
    const open = askMany('http://a/', 8);
    for (let nr = 0; nr < 2; nr++) end(open[nr]!);
    const more = askMany('http://a/', 14).filter((each) => !isOpen(each));
    expect(more).toHaveLength(10);
    prove('http://other/'); // else nobody would be kept waiting
    await pass(250);
    expect(more.map(({ answer }) => answer)).toEqual([
      ...Array.from({ length: 4 }, () => undefined),
      ...Array.from({ length: 6 }, () => 'endpoint-busy'),
    ]);
  });

  /**
   * More in line than an endpoint answers in ten seconds, of which nothing bad is known and which answered two calls of
   * late.
   */
  function askMore(isHandedOver: boolean) {
    prove('http://other/');
    const open = askMany('http://a/', 8);
    for (let nr = 0; nr < 2; nr++) end(open[nr]!, well, 5000);
    const more = askMany('http://a/', 25, isHandedOver).filter((each) => !isOpen(each));
    prove('http://other/'); // else nobody would be kept waiting
    return more;
  }
  const heldOf = (asked: Asked[]) => asked.filter(({ answer }) => answer === 'endpoint-busy').length;

  it('wait on where they were handed over, nothing bad is known of the endpoint, and it will get to them within ten seconds', async () => {
    const more = askMore(true);
    expect(more).toHaveLength(21);
    await pass(250);
    expect([heldOf(more), more.at(-1)!.answer]).toEqual([1, 'endpoint-busy']);
    expect(at.rooms.inLine).toBe(20);
  });

  it('from the queue wait on there for two seconds only, else those behind them in the queue would wait as well', async () => {
    const more = askMore(false);
    await pass(250);
    expect([heldOf(more), at.rooms.inLine]).toEqual([17, 4]);
  });

  it('from the queue wait on beside those that were handed over, with which they take turns', async () => {
    const handedOver = askMore(true);
    const queued = askMany('http://a/', 3);
    await pass(250);
    // The endpoint gets to 4 in two seconds, and to 20 in ten.
    expect([heldOf(queued), heldOf(handedOver)]).toEqual([1, 3]);
  });

  it('that were handed over wait on as if those from the queue, which are held, had not been before them', async () => {
    const queued = askMore(false);
    const handedOver = askMany('http://a/', 5, true);
    await pass(250);
    expect([heldOf(queued), heldOf(handedOver)]).toEqual([19, 0]);
  });

  it('from the queue are as many as it may have in all lines, however many were handed over', () => {
    const urlOf = (nr: number) => `http://filling-${nr}/`;
    const fillLines = (isHandedOver: boolean) => {
      for (let nr = 0; nr < 20; nr++) askMany(urlOf(nr), 512, isHandedOver);
    };
    for (let nr = 0; nr < 20; nr++) prove(urlOf(nr));
    fillLines(true);
    const before = at.rooms.inLine;
    expect(before).toBeGreaterThan(8192);
    fillLines(false);
    expect(at.rooms.inLine - before).toBe(8192);
    at.rooms.turnAway('endpoint-busy');
    fillLines(false);
    expect(at.rooms.inLine).toBe(8192);
  });

  it('are never held because the worker is full: that is not the fault of their endpoint', async () => {
    start(4);
    const open = fill(4);
    const waiting = ask('http://b/');
    for (const each of open) at.rooms.leave(each.answer as Place, well, 10); // answered, and being settled
    await pass(5000);
    expect(waiting.answer).toBeUndefined();
    at.rooms.giveBack(open[0]!.answer as Place);
    await settled();
    expect(isOpen(waiting)).toBe(true);
  });

  it('are never held because calls wait for a lock of ours', async () => {
    for (let nr = 0; nr < 8; nr++)
      void at.rooms.enter({ id: 's', callbackUrl: 'http://a/', maxConcurrency: null, credentials: {} });
    const waiting = ask('http://a/');
    await pass(5000);
    expect(waiting.answer).toBeUndefined();
  });

  it('of an endpoint that is alone are as many as it gets to within a minute', async () => {
    prove('http://a/');
    await pass(1050);
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    askMany('http://a/', 2000);
    expect(at.rooms.inLine).toBe(20 * 60);
  });

  it('of an endpoint that is alone are held where they keep the queue waiting, but for as many as it gets to within two seconds', async () => {
    prove('http://a/');
    await pass(1050);
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    let isWaiting = false;
    at.rooms.watchQueue(() => isWaiting);
    const inLine = askMany('http://a/', 300).filter((each) => !isOpen(each));
    await pass(350);
    expect(at.rooms.inLine).toBe(inLine.length);
    isWaiting = true;
    await pass(50);
    // 20 calls in 400 ms
    expect([at.rooms.inLine, inLine.at(-1)!.answer]).toEqual([100, 'endpoint-busy']);
  });

  it('that were handed over stay, where those from the queue of an endpoint that is alone keep it waiting', async () => {
    prove('http://a/');
    at.rooms.watchQueue(() => true);
    await pass(1050);
    prove('http://a/');
    const waiting = askMany('http://a/', 100, true).filter((each) => !isOpen(each));
    await pass(1000);
    expect(waiting.filter(({ answer }) => answer !== undefined)).toEqual([]);
  });

  it('are as many from the first one on, where no other endpoint was asked for in the second before', async () => {
    prove('http://other/');
    await pass(1050);
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    askMany('http://a/', 2000);
    expect(at.rooms.inLine).toBe(20 * 60);
  });

  it('are fewer for a second after another endpoint was asked for, however often it is asked for itself', async () => {
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    await pass(1050);
    prove('http://other/');
    await pass(900);
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    askMany('http://a/', 2000);
    expect(at.rooms.inLine).toBe(1024);
  });

  it('are held after a minute, a third of a lease, also where nobody else waits', async () => {
    prove('http://a/');
    await pass(1050);
    prove('http://a/');
    const open = askMany('http://a/', 8);
    const waiting = askMany('http://a/', 300);
    for (let second = 0; second < 60; second++) {
      expect(waiting.filter(({ answer }) => typeof answer === 'string')).toEqual([]);
      end([...open, ...waiting].find(isOpen)!, well, 5000);
      await pass(1000);
    }
    expect(waiting.at(-1)!.answer).toBe('endpoint-busy');
    expect(at.rooms.inLine).toBe(0);
  });

  it('of an endpoint that is in trouble are few: sixteen for each call', () => {
    round('http://a/', troubled); // a window of one
    ask('http://a/');
    expect(askMany('http://a/', 16).every(({ answer }) => answer === undefined)).toBe(true);
    expect(ask('http://a/').answer).toBe('endpoint-busy');
  });

  it('are turned away together when their endpoint is parked', async () => {
    askMany('http://a/1', 8);
    const waiting = [ask('http://a/1'), ask('http://a/1')];
    at.rooms.turnAway('endpoint-parked', 'http://a');
    await settled();
    expect(waiting.map(({ answer }) => answer)).toEqual(['endpoint-parked', 'endpoint-parked']);
    expect(at.rooms.inLine).toBe(0);
  });
});
