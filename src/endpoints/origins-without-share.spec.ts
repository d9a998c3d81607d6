import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { HeldReason } from '../ledger/delivery.js';
import type { Places } from './places.js';
import { Place, type Origin } from './room.js';
import { Rooms } from './rooms.js';
import { OriginsWithoutShare } from './origins-without-share.js';
import { well, type Verdict } from './verdict.js';
import { settled } from '../../test/support/settled.js';

const unanswered: Verdict = { kind: 'unanswered', reason: 'ECONNRESET' };

describe('origins that lack a share of the places', () => {
  it('get theirs first come first, each when fewer places than its share are taken', () => {
    const lacking = new OriginsWithoutShare();
    const [one, two, three] = ['one', 'two', 'three'] as unknown as [Origin, Origin, Origin];
    lacking.add(one, 64);
    lacking.add(two, 128);
    lacking.add(three, 128);
    expect(lacking.take(128)).toBeUndefined();
    expect([lacking.take(127), lacking.take(127), lacking.take(127)]).toEqual([two, three, undefined]);
    expect([lacking.take(63), lacking.take(63)]).toEqual([one, undefined]);
  });

  it('lack one share at a time, and none once they are taken out', () => {
    const lacking = new OriginsWithoutShare();
    const origin = 'origin' as unknown as Origin;
    lacking.add(origin, 128);
    lacking.add(origin, 64);
    expect(lacking.take(100)).toBeUndefined();
    lacking.delete(origin);
    lacking.delete(origin);
    expect(lacking.take(0)).toBeUndefined();
  });

  describe('in the thousands', () => {
    let rooms: Rooms;
    let open: Place[];
    beforeEach(() => {
      rooms = new Rooms({ places: 512, perUrl: 128, longestWaitMs: 60_000, now: () => 0 });
      open = [];
    });
    const take = (answer: Place | HeldReason) => {
      if (!(answer instanceof Place)) return;
      rooms.begin(answer);
      open.push(answer);
    };
    const ask = (callbackUrl: string) => {
      const answer = rooms.enter({ id: 's', callbackUrl, maxConcurrency: null, credentials: {} });
      if (answer instanceof Promise) void answer.then(take);
      else take(answer);
    };
    const end = (verdict: Verdict, durationMs = 10) => {
      const place = open.shift()!;
      rooms.leave(place, verdict, durationMs);
      rooms.giveBack(place);
    };

    it.each([
      ['nothing is known of', 256, () => {}, (nr: number) => end(nr % 2 === 0 ? unanswered : well)],
      ['take long to answer', 448, (url: string) => (ask(url), end(well, 400)), () => end(well, 400)],
    ])(
      'that %s cost a few steps for each call that ends, however many they are, and all get their turn',
      async (_, most, prepare, endOne) => {
        for (let nr = 0; nr < 5000; nr++) prepare(`http://one-of-many-${nr}/`);
        for (let nr = 0; nr < 5000; nr++) ask(`http://one-of-many-${nr}/`);
        expect([open.length, rooms.inLine]).toEqual([most, 5000 - most]);
        const places = Reflect.get(rooms, 'places') as Places;
        const steps = [vi.spyOn(places, 'suffice'), vi.spyOn(places, 'hasShareOfLong'), vi.spyOn(places, 'hasShare')];
        for (let calls = 0; calls < 5000; calls++) {
          endOne(calls);
          await settled();
          expect(steps.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBeLessThanOrEqual(15);
          for (const step of steps) step.mockClear();
          expect(open).toHaveLength(Math.min(most, 5000 - calls - 1)); // none is left behind
        }
        expect(rooms.inLine).toBe(0);
        await rooms.drained();
      },
    );

    it('are not looked through when one of them is parked or closed', () => {
      for (let nr = 0; nr < 5000; nr++) ask(`http://unknown-${nr}/`);
      const places = Reflect.get(rooms, 'places') as Places;
      const steps = vi.spyOn(places, 'suffice').mockClear();
      rooms.turnAway('endpoint-parked', 'http://unknown-4000');
      rooms.startSlowly('http://unknown-4001');
      rooms.startSlowly('http://never-called');
      expect(rooms.inLine).toBe(5000 - 256 - 1);
      expect(steps.mock.calls.length).toBeLessThanOrEqual(2);
    });
  });
});
