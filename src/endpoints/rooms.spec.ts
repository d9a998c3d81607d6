import { beforeEach, describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { Places } from './places.js';
import type { Place } from './room.js';
import { none, well } from './verdict.js';
import { troubled, unanswered, untrusted, testRooms, type Asked } from '../../test/support/test-rooms.js';
import { settled } from '../../test/support/settled.js';

describe('rooms', () => {
  const { at, start, ask, askMany, isOpen, openOf, end, round, prove, fill, pass } = testRooms();
  beforeEach(() => start());

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
        at.nowMs += 2;
      }
      expect(openOf(askMany('http://a/', 100))).toBe(8);
    });

    it('is at most what the subscription asks for', () => {
      const asked = Array.from({ length: 5 }, () => ask('http://a/', 2));
      expect(openOf(asked)).toBe(2);
      expect(isOpen(ask('http://a/'))).toBe(true); // another subscription with this URL has no such limit
    });

    it('is at most what the subscription asks for by now: calls that were open before a change count', async () => {
      const open = [ask('http://a/', 2), ask('http://a/', 2)];
      const inLine = ask('http://a/', 2);
      const last = ask('http://a/', 1);
      end(open[0]!);
      await settled();
      expect(openOf([inLine, last])).toBe(0);
      end(open[1]!);
      await settled();
      expect([inLine, last].map(isOpen)).toEqual([true, false]);
      const more = Array.from({ length: 3 }, () => ask('http://a/', 3));
      await settled();
      expect([last, ...more].map(isOpen)).toEqual([true, true, false, false]);
    });

    it('is soon as wide again as it is at first where its limit is lifted', async () => {
      const open = Array.from({ length: 2 }, () => ask('http://a/', 1));
      const more = Array.from({ length: 10 }, () => ask('http://a/', 100));
      await settled();
      expect(openOf([...open, ...more])).toBe(8);
    });

    it('takes back a place that was given by a limit that has been lowered', () => {
      const [first, second] = [ask('http://a/', 2), ask('http://a/', 2)];
      const isOf = ({ answer }: Asked, maxConcurrency: number) =>
        at.rooms.isOf(answer as Place, {
          id: 'subscription',
          callbackUrl: 'http://a/',
          maxConcurrency,
          credentials: {},
        });
      expect([isOf(first, 2), isOf(first, 3), isOf(first, 1)]).toEqual([true, true, false]);
      end(second);
      expect(isOf(first, 1)).toBe(true);
    });

    it('starts slowly again when the endpoint has recovered', () => {
      round('http://a/');
      for (let nr = 0; nr < 5; nr++) round('http://a/', unanswered);
      at.rooms.startSlowly('http://a');
      expect(round('http://a/')).toBe(8);
    });

    it('starts slowly again by itself where the URL alone has recovered: other URLs of its host lose nothing', () => {
      for (let nr = 0; nr < 4; nr++) round('http://a/well');
      at.rooms.startSlowly('http://a/recovered');
      expect(round('http://a/well')).toBe(128);
    });
  });

  it('are one for a URL, in however many ways it is spelt', () => {
    const spellings = ['http://a/', 'http://A:80', 'http://a/#part', 'http://a/x/..'];
    expect(openOf(spellings.flatMap((url) => askMany(url, 4)))).toBe(8);
  });

  describe('of a URL that is called with several TLS identities', () => {
    const others = ['http://a/', 'http://a/other'];
    const broken = { tls: { id: 'broken' } };

    it('are one for each: one whose certificate is refused takes no room from the others, nor from its origin', () => {
      for (const url of others) prove(url);
      for (let nr = 0; nr < 20; nr++) end(ask('http://a/', null, false, broken), untrusted);
      const refused = Array.from({ length: 10 }, () => ask('http://a/', null, false, broken));
      expect(openOf(refused)).toBe(1);
      for (const url of others) expect(openOf(askMany(url, 10))).toBe(8);
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
      at.nowMs += 50;
      found.push(...at.rooms.tick());
    }
    const overdue = new Map([['http://a/', { calls: 8, isSilent: true }]]);
    expect(found[0]).toEqual({ origin: 'http://a', calls: 8, overdue, answersBeside: false });
    expect(found).toHaveLength(2);
  });

  it('count no time in which the process stood still: what was answered meanwhile is still to be read', async () => {
    for (let nr = 0; nr < 20; nr++) prove('http://a/');
    const open = askMany('http://a/', 8);
    const waiting = askMany('http://a/', 5);
    prove('http://b/');
    at.nowMs += 2100;
    expect(at.rooms.tick()).toEqual([]);
    await settled();
    expect(waiting.map(({ answer }) => answer)).toEqual(Array.from({ length: 5 }, () => undefined));
    for (const each of open) end(each, well, 2105);
    await settled();
    expect(openOf(waiting)).toBe(5);
  });

  it('are empty when all places have been given back', async () => {
    const asked = askMany('http://a/', 3);
    let isDrained = false;
    void at.rooms.drained().then(() => (isDrained = true));
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
          expect(unproven).toHaveLength((Reflect.get(at.rooms, 'places') as Places).unproven);
        }
        for (let rounds = 0; rounds < 1000 && open().length > 0; rounds++) {
          for (const each of open()) end(each);
          await settled();
        }
        expect(asked.filter(({ answer }) => answer === undefined)).toEqual([]);
        expect(at.rooms.inLine).toBe(0);
        await at.rooms.drained();
      }),
      { numRuns: 60 },
    );
  });
});
