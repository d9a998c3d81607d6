import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { HeldReason } from '../ledger/delivery.js';
import type { Places } from './places.js';
import { Place } from './room.js';
import { Rooms } from './rooms.js';
import { none, well, type Verdict } from './verdict.js';

const unanswered: Verdict = { kind: 'unanswered', reason: 'ECONNRESET' };
const troubled: Verdict = { kind: 'troubled', reason: 'HTTP 500', askedDelayMs: undefined };
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A delivery on its way: its place, or why it is held; undefined while it waits in line. */
interface Asked {
  url: string;
  answer: Place | HeldReason | undefined;
}

describe('rooms', () => {
  let nowMs: number;
  let rooms: Rooms;

  const start = (places = 512, perUrl = 128) => {
    nowMs = 1_000_000;
    rooms = new Rooms({ places, perUrl, longestWaitMs: 60_000, now: () => nowMs });
  };
  beforeEach(() => start());

  /** The call begins as soon as it has its place. */
  function ask(url: string, maxConcurrency: number | null = null): Asked {
    const asked: Asked = { url, answer: undefined };
    const take = (answer: Place | HeldReason) => {
      asked.answer = answer;
      if (answer instanceof Place) rooms.begin(answer);
    };
    const answer = rooms.enter({ id: 'subscription', callbackUrl: url, maxConcurrency });
    if (answer instanceof Promise) void answer.then(take);
    else take(answer);
    return asked;
  }
  const askMany = (url: string, count: number) => Array.from({ length: count }, () => ask(url));
  const isOpen = ({ answer }: Asked) => answer instanceof Place && answer.hasRoom;
  const openOf = (asked: Asked[]) => asked.filter(isOpen).length;
  const end = ({ answer }: Asked, verdict: Verdict = well, durationMs = 10) => {
    rooms.leave(answer as Place, verdict, durationMs);
    rooms.giveBack(answer as Place);
  };
  /** Fills the window with calls and ends them. @returns how many there were */
  function round(url: string, verdict: Verdict = well): number {
    const open: Asked[] = [];
    for (let next = ask(url); isOpen(next); next = ask(url)) open.push(next);
    rooms.turnAway('endpoint-busy');
    for (const each of open) end(each, verdict);
    return open.length;
  }
  /** It has answered well, and is known for it. */
  const prove = (url: string) => end(ask(url));
  /** As many origins with one call each. */
  const fill = (count: number) => {
    const urls = Array.from({ length: count }, (_, nr) => `http://filling-${nr}/`);
    for (const url of urls) prove(url);
    return urls.map((url) => ask(url));
  };
  async function pass(ms: number): Promise<void> {
    for (const until = nowMs + ms; nowMs < until;) {
      nowMs += 50;
      rooms.tick();
      await settled();
    }
  }

  describe('the window of a URL', () => {
    it('lets eight calls to an unknown endpoint be open, then one more for each success, up to its maximum', () => {
      expect(Array.from({ length: 6 }, () => round('http://a/'))).toEqual([8, 16, 32, 64, 128, 128]);
    });

    it('halves for every failure, down to one call', () => {
      round('http://a/');
      expect([round('http://a/', troubled), round('http://a/'), round('http://a/')]).toEqual([16, 1, 2]);
    });

    it('widens only as far as it is used: an endpoint that needs one call at a time gets no hundred when it hangs', () => {
      for (let nr = 0; nr < 1000; nr++) {
        end(ask('http://a/'));
        nowMs += 2;
      }
      expect(openOf(askMany('http://a/', 100))).toBe(8);
    });

    it('is at most what the subscription asks for', () => {
      const asked = Array.from({ length: 5 }, () => ask('http://a/', 2));
      expect(openOf(asked)).toBe(2);
      expect(isOpen(ask('http://a/'))).toBe(true); // another subscription with this URL has no such limit
    });

    it('starts slowly again when the endpoint has recovered', () => {
      round('http://a/');
      for (let nr = 0; nr < 5; nr++) round('http://a/', unanswered);
      rooms.startSlowly('http://a');
      expect(round('http://a/')).toBe(8);
    });

    it('starts slowly again by itself where the URL alone has recovered: other URLs of its host lose nothing', () => {
      for (let nr = 0; nr < 4; nr++) round('http://a/well');
      rooms.startSlowly('http://a/recovered');
      expect(round('http://a/well')).toBe(128);
    });
  });

  it('have no more calls to one dead host than its origin has room for, however many URLs it has', async () => {
    const asked = Array.from({ length: 64 }, (_, nr) => ask(`http://dead/${nr}`));
    expect(openOf(asked)).toBe(32);
    for (const each of asked.filter(isOpen)) end(each, unanswered);
    await settled();
    expect(openOf(asked)).toBe(1);
  });

  it.each([
    [512, 128],
    [4, 2],
    [2, 1],
    [1, 1],
  ])('of %i places let one origin have %i, as many as it leaves free at most', (places, most) => {
    start(places);
    for (let rounds = 0; rounds < 9; rounds++) round('http://a/');
    expect(round('http://a/')).toBe(most);
  });

  describe('deliveries in line', () => {
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

    it('wait on where the endpoint, as fast as it was lately, will get to them within two seconds', async () => {
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

    it('are never held because the worker is full: that is not the fault of their endpoint', async () => {
      start(4);
      const open = fill(4);
      const waiting = ask('http://b/');
      for (const each of open) rooms.leave(each.answer as Place, well, 10); // answered, and being settled
      await pass(5000);
      expect(waiting.answer).toBeUndefined();
      rooms.giveBack(open[0]!.answer as Place);
      await settled();
      expect(isOpen(waiting)).toBe(true);
    });

    it('are never held because calls wait for a lock of ours', async () => {
      for (let nr = 0; nr < 8; nr++) void rooms.enter({ id: 's', callbackUrl: 'http://a/', maxConcurrency: null });
      const waiting = ask('http://a/');
      await pass(5000);
      expect(waiting.answer).toBeUndefined();
    });

    it('of an endpoint that is alone are as many as it gets to within a minute', async () => {
      prove('http://a/');
      await pass(1050);
      for (let nr = 0; nr < 20; nr++) prove('http://a/');
      askMany('http://a/', 2000);
      expect(rooms.inLine).toBe(20 * 60);
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
      expect(rooms.inLine).toBe(0);
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
      rooms.turnAway('endpoint-parked', 'http://a');
      await settled();
      expect(waiting.map(({ answer }) => answer)).toEqual(['endpoint-parked', 'endpoint-parked']);
      expect(rooms.inLine).toBe(0);
    });
  });

  describe('endpoints that are not proven', () => {
    const unknown = (count: number) => Array.from({ length: count }, (_, nr) => ask(`http://unknown-${nr}/`));

    it('have a quarter of the places together', () => {
      prove('http://quick/');
      expect(openOf(unknown(50).flatMap(({ url }) => askMany(url, 7)))).toBe(128 - 50);
      expect(isOpen(ask('http://quick/'))).toBe(true);
    });

    it('have half of the places for one call to each origin: one that is seldom used need not wait for those that hang', () => {
      for (let nr = 0; nr < 16; nr++) askMany(`http://hangs-${nr}/`, 8); // the quarter
      expect(isOpen(ask('http://seldom/'))).toBe(true);
      expect(isOpen(ask('http://seldom/'))).toBe(false);
      expect(openOf(unknown(500))).toBe(256 - 128 - 1);
    });

    it('have one place at least', () => {
      start(1);
      expect(openOf(unknown(3))).toBe(1);
    });

    it('are those that were quick and now hang, a quarter of a second later', async () => {
      const urls = Array.from({ length: 50 }, (_, nr) => `http://was-quick-${nr}/`);
      for (const url of urls) prove(url);
      prove('http://quick/');
      const hanging: Asked[] = [];
      // 400 a second, none of which is answered.
      for (let nr = 0; nr < 4000; nr++) {
        hanging.push(ask(urls[nr % 50]!));
        if (nr % 20 === 0) await pass(50);
        if (nr % 20 === 10) prove('http://quick/'); // it has its place at once
      }
      expect(openOf(hanging)).toBeLessThanOrEqual(128 + 20);
    });

    it.each([1, 8])(
      'are those that hang for the second time, whatever they timed out with (%i calls)',
      async (calls) => {
        for (const each of askMany('http://a/', calls)) end(each, unanswered, 10_000);
        prove('http://a/');
        const { answer } = ask('http://a/');
        expect((answer as Place).room.isProven).toBe(true);
        await pass(300);
        expect((answer as Place).room.isProven).toBe(false);
      },
    );

    it('are those whose calls take two seconds longer than usual, however slow they are', async () => {
      for (let nr = 0; nr < 20; nr++) end(ask('http://slow/'), well, 5000);
      const { answer } = ask('http://slow/');
      await pass(6900);
      expect((answer as Place).room.isProven).toBe(true);
      await pass(200);
      expect((answer as Place).room.isProven).toBe(false);
    });

    it('leave half of their share to others while calls are overdue', async () => {
      for (let nr = 0; nr < 16; nr++) askMany(`http://hangs-${nr}/`, 4);
      await pass(300);
      for (let nr = 0; nr < 16; nr++) expect(isOpen(ask(`http://hangs-${nr}/`))).toBe(false);
      expect(openOf(unknown(16).flatMap((one) => [one, ...askMany(one.url, 7)]))).toBe(64);
    });

    it('become proven with the first call that goes well', () => {
      const asked = unknown(500);
      for (const each of asked.slice(0, 256)) end(each);
      expect(asked.slice(0, 256).every(({ url }) => isOpen(ask(url)))).toBe(true);
    });
  });

  it('give turns to origins, so that a host with 64 URLs does not get 64', async () => {
    start(24);
    const urls = Array.from({ length: 64 }, (_, nr) => `http://many/${nr}`);
    for (const url of [...urls, 'http://one/']) prove(url);
    const open = fill(24);
    const many = urls.map((url) => ask(url));
    const one = Array.from({ length: 8 }, () => ask('http://one/'));
    for (const each of open) end(each);
    await settled();
    expect([openOf(many), openOf(one)]).toEqual([8, 8]);
  });

  it('find an origin that hangs once nothing was answered for two seconds, although deliveries wait for it', async () => {
    askMany('http://a/', 8);
    const found = [];
    for (let ms = 0; ms < 2050; ms += 50) {
      ask('http://a/');
      nowMs += 50;
      found.push(...rooms.tick());
    }
    expect(found[0]).toEqual({ address: 'http://a', calls: 8 });
    expect(found).toHaveLength(2);
  });

  it('count no time in which the process stood still: what was answered meanwhile is still to be read', async () => {
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    const open = askMany('http://a/', 8);
    const waiting = askMany('http://a/', 5);
    prove('http://b/');
    nowMs += 2100;
    expect(rooms.tick()).toEqual([]);
    await settled();
    expect(waiting.map(({ answer }) => answer)).toEqual(Array.from({ length: 5 }, () => undefined));
    for (const each of open) end(each, well, 2105);
    await settled();
    expect(openOf(waiting)).toBe(5);
  });

  it('are empty when all places have been given back', async () => {
    const asked = askMany('http://a/', 3);
    let isDrained = false;
    void rooms.drained().then(() => (isDrained = true));
    for (const each of asked) {
      await settled();
      expect(isDrained).toBe(false);
      end(each);
    }
    await settled();
    expect(isDrained).toBe(true);
  });

  it('never give more than there is, and forget nobody, whatever endpoints do', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('ask' as const), host: fc.nat(4), path: fc.nat(2) }),
      fc.record({
        kind: fc.constant('end' as const),
        which: fc.nat(50),
        verdict: fc.constantFrom(well, troubled, unanswered, none),
      }),
      fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(50, 250, 1000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 12 }), async (steps, places) => {
        start(places, 4);
        const asked: Asked[] = [];
        const open = () => asked.filter(isOpen);
        for (const each of steps) {
          if (each.kind === 'ask') asked.push(ask(`http://${each.host}/${each.path}`));
          else if (each.kind === 'pass') await pass(each.ms);
          else {
            const all = open();
            if (all.length > 0) end(all[each.which % all.length]!, each.verdict);
          }
          await settled();
          expect(open().length).toBeLessThanOrEqual(places);
          const unproven = open().filter(({ answer }) => !(answer as Place).room.isProven);
          expect(unproven).toHaveLength((Reflect.get(rooms, 'places') as Places).unproven);
        }
        for (let rounds = 0; rounds < 1000 && open().length > 0; rounds++) {
          for (const each of open()) end(each);
          await settled();
        }
        expect(asked.filter(({ answer }) => answer === undefined)).toEqual([]);
        expect(rooms.inLine).toBe(0);
        await rooms.drained();
      }),
      { numRuns: 60 },
    );
  });
});
