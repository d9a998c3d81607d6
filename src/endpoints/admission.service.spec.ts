import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { readSettings } from '../config/settings.js';
import type { Clock } from '../infra/clock.js';
import type { Delivery, HeldReason } from '../ledger/delivery.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { Admission } from './admission.service.js';
import { HoldRule } from './hold-rule.service.js';
import type { OpenEndpoints } from './open-endpoints.service.js';
import { endpointsOf, type Callback } from './origin.js';
import type { Place } from './room.js';
import type { Rooms } from './rooms.js';
import { well, type Verdict } from './verdict.js';

Logger.overrideLogger(false);

const unanswered: Verdict = { kind: 'unanswered', reason: 'ECONNRESET' };
const untrusted: Verdict = { kind: 'untrusted', reason: 'CERT_HAS_EXPIRED' };
const troubled = (askedDelayMs?: number): Verdict => ({ kind: 'troubled', reason: 'HTTP 503', askedDelayMs });
const url = 'http://receiver/hook';
const origin = 'http://receiver';

describe('admission', () => {
  let nowMs: number;
  let opened: Map<string, unknown[]>;
  let closed: string[];
  /** It has asked for more time. */
  let staysOpen: boolean;
  let failing: Error | undefined;
  let nextProbeAt: Date;
  /** The same as the next probe, if undefined. */
  let leftAloneUntil: Date | undefined;
  /** How many probes were claimed, and whether it is given. */
  let claims: number;
  let claim: () => Promise<boolean>;
  /** And the pause before the next. */
  let endedProbes: [address: string, pauseMs: number][];
  /** Of these, the ones that found out nothing. */
  let inVain: string[];
  let openEndpoints: OpenEndpoints;
  let admission: Admission;
  let count: number;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] });
    nowMs = 0;
    count = 0;
    opened = new Map();
    closed = [];
    staysOpen = false;
    failing = undefined;
    nextProbeAt = new Date(1e15);
    leftAloneUntil = undefined;
    claims = 0;
    endedProbes = [];
    inVain = [];
    openEndpoints = {
      of: (callback: Callback) => {
        const address = endpointsOf(callback).find((each) => opened.has(each));
        return address === undefined
          ? undefined
          : ({ address, nextProbeAt, leftAloneUntil: leftAloneUntil ?? nextProbeAt } as OpenEndpoint);
      },
      get all() {
        return new Map([...opened.keys()].map((address) => [address, { address, openedAt: new Date(100) }]));
      },
      claimProbe: () => {
        claims++;
        return claim();
      },
      endProbe: (address: string, pauseMs: number, foundNothing = false) => {
        endedProbes.push([address, pauseMs]);
        if (foundNothing) inVain.push(address);
        return Promise.resolve();
      },
      keepProbes: () => Promise.resolve(),
      open: (address: string, ...rest: unknown[]) => {
        if (failing) return Promise.reject(failing);
        opened.set(address, rest);
        return Promise.resolve();
      },
      close: (address: string) => {
        if (staysOpen) return Promise.resolve(false);
        opened.delete(address);
        closed.push(address);
        return Promise.resolve(true);
      },
    } as unknown as OpenEndpoints;
    const ledgerClock = { now: () => nowMs } as LedgerClock;
    const clock = { now: () => nowMs } as Clock;
    admission = new Admission(
      { settings: readSettings({}) },
      new HoldRule(openEndpoints),
      openEndpoints,
      ledgerClock,
      clock,
    );
    admission.onApplicationBootstrap();
  });
  afterEach(() => {
    admission.onModuleDestroy();
    vi.useRealTimers();
  });

  const delivery = (isProbe = false, isReleased = isProbe) =>
    ({ notificationId: String(++count), subscriptionId: 's', isReleased, isProbe }) as Delivery;
  const noLimits = { id: 's', maxConcurrency: null, pausedAt: null, ratePerSecond: null };
  const enter = (each = delivery(), callbackUrl = url, credentials: Callback['credentials'] = {}) =>
    admission.enter(each, { ...noLimits, callbackUrl, credentials } as Subscription, false);
  /** Sends one, with that end. */
  async function send(
    verdict: Verdict,
    each = delivery(),
    callbackUrl = url,
    credentials: Callback['credentials'] = {},
  ): Promise<HeldReason | 'sent'> {
    const place = await enter(each, callbackUrl, credentials);
    if (typeof place === 'string') return place;
    admission.begin(place);
    admission.leave(place, verdict, 10, each);
    admission.giveBack(place);
    await new Promise((resolve) => setImmediate(resolve));
    return 'sent';
  }
  async function sendMany(times: number, verdict: Verdict): Promise<void> {
    for (let nr = 0; nr < times; nr++) await send(verdict);
  }

  describe('of calls that fail for their TLS identity', () => {
    const identity = { tls: { id: 'identity' } };
    const own = `${url} with TLS identity identity`;
    const fail = async (times: number, credentials: Callback['credentials'] = identity) => {
      for (let nr = 0; nr < times; nr++) await send(untrusted, undefined, url, credentials);
    };

    it('parks the URL for this identity alone', async () => {
      await fail(4);
      expect(opened.size).toBe(0);
      await fail(1);
      expect([...opened]).toEqual([[own, ['CERT_HAS_EXPIRED', 5, undefined]]]);
      expect(await send(well, undefined, url, identity)).toBe('endpoint-parked');
      expect(await send(well)).toBe('sent');
      expect(await send(well, undefined, `${origin}/other`, identity)).toBe('sent');
    });

    it('parks the URL for those without an identity alone', async () => {
      await fail(5, {});
      expect([...opened.keys()]).toEqual([url]);
      expect(await send(well, undefined, url, identity)).toBe('sent');
    });

    it('adds nothing to the failures of the origin, and does not end them', async () => {
      await sendMany(4, unanswered);
      await fail(4);
      expect(opened.size).toBe(0);
      await send(unanswered);
      expect([...opened.keys()]).toEqual([origin]);
    });

    it('leaves a parked origin parked, whose probe found out nothing, and a probe with another identity closes it', async () => {
      await sendMany(5, unanswered);
      expect(await send(untrusted, delivery(true), url, identity)).toBe('sent');
      expect([opened.has(origin), closed]).toEqual([true, []]);
      nowMs += 1000;
      expect(await send(well, delivery(true))).toBe('sent');
      expect(closed).toEqual([origin]);
    });

    it('parks the URL for this identity as well where they were the probe of the origin, which counts as none', async () => {
      await sendMany(5, unanswered);
      await send(untrusted, delivery(true), url, identity);
      expect([[...opened].slice(1), inVain]).toEqual([[[own, ['CERT_HAS_EXPIRED', 1, undefined]]], [origin]]);
      // A probe of the URL itself has found out about it.
      opened.delete(origin);
      nowMs += 1000;
      await send(untrusted, delivery(true), url, identity);
      expect(endedProbes).toEqual([
        [origin, 500],
        [own, 500],
      ]);
      expect([closed, inVain]).toEqual([[], [origin]]);
    });

    it('leaves the URL alone for longer where it was parked already and they were the probe of the origin', async () => {
      await sendMany(5, unanswered);
      opened.set(own, []);
      await send(untrusted, delivery(true), url, identity);
      expect(opened.get(own)).toEqual(['CERT_HAS_EXPIRED', 1, undefined]);
    });

    it('does not close the URL of others when it goes well', async () => {
      await fail(5, {});
      await send(well, undefined, url, identity);
      expect([...opened.keys()]).toEqual([url]);
    });

    it('takes a place no longer for one of the same subscription when that has got another identity', async () => {
      const place = (await enter(undefined, url, identity)) as Place;
      const now = { ...noLimits, callbackUrl: url, credentials: { tls: { id: 'renewed' } } } as Subscription;
      expect(admission.isStillFor(place, delivery(), now)).toBe(false);
      expect(admission.isStillFor(place, delivery(), { ...now, credentials: identity } as Subscription)).toBe(true);
    });
  });

  it('parks the origin when as many deliveries in a row are not answered as the setting says', async () => {
    await sendMany(4, unanswered);
    expect(opened.size).toBe(0);
    await send(unanswered);
    expect([...opened]).toEqual([[origin, ['ECONNRESET', 5, undefined]]]);
    expect(await send(well)).toBe('endpoint-parked');
  });

  it('parks the URL alone when it answers with errors, and its origin stays open to others', async () => {
    await sendMany(5, troubled());
    expect([...opened.keys()]).toEqual([url]);
    expect(await send(well, delivery(), `${origin}/other`)).toBe('sent');
  });

  it('counts an error that was answered as a sign of life of the origin', async () => {
    const fourOf = async (path: string) => {
      for (let nr = 0; nr < 4; nr++) await send(unanswered, delivery(), origin + path);
    };
    await fourOf('/one');
    await send(troubled());
    await fourOf('/other');
    expect(opened.size).toBe(0);
  });

  it('parks the URL alone when it is not answered and others of its origin are meanwhile', async () => {
    for (let nr = 0; nr < 4; nr++) {
      await send(unanswered);
      await send(well, delivery(), `${origin}/other`);
    }
    expect(opened.size).toBe(0);
    await send(unanswered);
    expect([...opened]).toEqual([[url, ['ECONNRESET', 5, undefined]]]);
    expect(await send(well)).toBe('endpoint-parked');
    expect(await send(well, delivery(), `${origin}/other`)).toBe('sent');
    await send(unanswered, delivery(true));
    expect([...opened.keys()]).toEqual([url]);
  });

  it('parks a URL without a path alone, and not its origin, whose other URLs are well', async () => {
    for (let nr = 0; nr < 4; nr++) await send(troubled(), delivery(), origin);
    expect(opened.size).toBe(0);
    await send(troubled(120_000), delivery(), origin);
    expect([...opened]).toEqual([[`${origin}/`, ['HTTP 503', 5, 120_000]]]);
    expect(await send(well, delivery(), origin)).toBe('endpoint-parked');
    expect(await send(well, delivery(), `${origin}/other`)).toBe('sent');
    expect(closed).toEqual([]);
    expect(await send(well, delivery(true), origin)).toBe('sent');
    expect(closed).toEqual([`${origin}/`]);
  });

  const tick = async () => {
    await vi.advanceTimersByTimeAsync(50);
    await new Promise((resolve) => setImmediate(resolve));
  };

  it('makes as many calls as at first to an endpoint that another process, or an operator, has closed', async () => {
    const open: Place[] = [];
    for (let nr = 0; nr < 8; nr++) open.push((await enter()) as Place);
    for (const place of open) admission.leave(place, unanswered, 10, delivery());
    await tick();
    expect(opened.has(origin)).toBe(true);
    opened.delete(origin);
    await tick();
    const answers = Array.from({ length: 9 }, () => enter());
    expect(answers.map((each) => each instanceof Promise)).toEqual([...Array<boolean>(8).fill(false), true]);
  });

  it('begins anew with an endpoint that another process, or an operator, has closed', async () => {
    await sendMany(5, unanswered);
    await tick();
    opened.delete(origin);
    await tick();
    await sendMany(4, unanswered);
    expect(opened.size).toBe(0);
    await send(unanswered);
    expect([...opened.keys()]).toEqual([origin]);
  });

  it('parks no URL for a delivery that is alone, however often it is not answered', async () => {
    const alone = delivery();
    for (let nr = 0; nr < 20; nr++) {
      await send(unanswered, alone);
      await send(well, delivery(), `${origin}/other`);
    }
    expect(opened.size).toBe(0);
  });

  it('parks the origin, and not its URLs as well, when nothing of it is answered', async () => {
    for (const path of ['/a', '/b', '/c', '/a', '/a']) await send(unanswered, delivery(), origin + path);
    expect([...opened.keys()]).toEqual([origin]);
    for (let nr = 0; nr < 5; nr++) {
      await send(unanswered, delivery(true), `${origin}/a`); // probes
      nowMs += 500;
    }
    expect([...opened.keys()]).toEqual([origin]);
  });

  it('counts nothing that was no call, or that we ended', async () => {
    await sendMany(10, { kind: 'none' });
    expect(opened.size).toBe(0);
  });

  it('parks an endpoint that asks for it, for that long', async () => {
    await send(troubled(120_000));
    expect([...opened]).toEqual([[url, ['HTTP 503', 1, 120_000]]]);
    await send(troubled(0), delivery(), `${origin}/now`);
    expect([...opened.keys()]).toEqual([url]);
  });

  it('parks an endpoint for the longest time that it asks for while it is being parked for its failures', async () => {
    const open: Place[] = [];
    for (let nr = 0; nr < 8; nr++) open.push((await enter()) as Place);
    const answer = (verdict: Verdict) => admission.leave(open.pop()!, verdict, 10, delivery());
    let written!: () => void;
    const opening = vi.spyOn(openEndpoints, 'open');
    opening.mockReturnValueOnce(new Promise((resolve) => (written = resolve)));
    for (let nr = 0; nr < 5; nr++) answer(troubled());
    for (const askedMs of [2000, 3_600_000, 60_000]) answer(troubled(askedMs));
    expect(opening.mock.calls).toEqual([[url, 'HTTP 503', 5, undefined]]);
    written();
    await new Promise((resolve) => setImmediate(resolve));
    expect(opening.mock.calls.slice(1)).toEqual([[url, 'HTTP 503', 7, 3_600_000]]);
  });

  it('parks an endpoint again that asks for it while it is being closed', async () => {
    const open = [(await enter()) as Place, (await enter()) as Place];
    admission.leave(open[0]!, troubled(2000), 10, delivery());
    await new Promise((resolve) => setImmediate(resolve));
    let written!: () => void;
    const closing = new Promise<void>((resolve) => (written = resolve));
    vi.spyOn(openEndpoints, 'close').mockReturnValueOnce(closing.then(() => opened.delete(url)));
    admission.arrivedBefore({ probes: url } as Place, 101);
    admission.leave(open[1]!, troubled(60_000), 10, delivery());
    written();
    await new Promise((resolve) => setImmediate(resolve));
    expect([...opened]).toEqual([[url, ['HTTP 503', 1, 60_000]]]);
  });

  it('leaves it parked when a call ends well that began before', async () => {
    const before = (await enter()) as Place;
    admission.begin(before);
    await send(troubled(120_000));
    admission.leave(before, well, 10, delivery());
    expect(closed).toEqual([]);
    expect(await send(well, delivery(true))).toBe('sent');
    expect(closed).toEqual([url]);
  });

  it('lets one probe at a time find out about a parked endpoint, and the next one a moment later', async () => {
    await sendMany(5, unanswered);
    const probe = await enter(delivery(true));
    expect(typeof probe).toBe('object');
    expect(await enter(delivery(true))).toBe('endpoint-parked');
    expect(endedProbes).toEqual([]);
    admission.giveBack(probe as Place);
    expect(endedProbes).toEqual([[origin, 500]]);
    // Its claim is given back: until its lease ended, for seconds, nobody else could make one.
    expect(await enter(delivery(true))).toBe('endpoint-parked');
    expect(endedProbes).toEqual([
      [origin, 500],
      [origin, 500],
    ]);
    nowMs += 500;
    expect(typeof (await enter(delivery(true)))).toBe('object');
  });

  it('takes what was released before the endpoint was parked for no probe: nobody claimed one for it', async () => {
    await sendMany(5, unanswered);
    for (let nr = 0; nr < 5; nr++) expect(await enter(delivery(false, true))).toBe('endpoint-parked');
    expect(typeof (await enter(delivery(true)))).toBe('object');
    expect(endedProbes).toEqual([]);
  });

  it('leaves an endpoint alone for seconds where its probe finds no room', async () => {
    await sendMany(5, unanswered);
    admission.stop();
    expect(await enter(delivery(true))).toBe('endpoint-parked');
    expect(endedProbes).toEqual([[origin, 5000]]);
  });

  it('has an endpoint probed again soon whose probe has ended without a call, unless another one is under way', async () => {
    const ends = () => admission.probeEnded({ ...noLimits, callbackUrl: url, credentials: {} } as Subscription);
    ends();
    expect(endedProbes).toEqual([]);
    await sendMany(5, unanswered);
    ends();
    expect([endedProbes, inVain]).toEqual([[[origin, 500]], [origin]]);
    await enter(delivery(true));
    ends();
    expect(endedProbes).toHaveLength(1);
  });

  it('has an endpoint probed again soon whose probe is for a subscription that was paused on its way', async () => {
    await sendMany(5, unanswered);
    const paused = { ...noLimits, callbackUrl: url, credentials: {}, pausedAt: new Date() } as Subscription;
    expect(admission.enter(delivery(false, true), paused, false)).toBe('paused');
    expect(endedProbes).toEqual([]);
    expect(admission.enter(delivery(true), paused, false)).toBe('paused');
    expect([endedProbes, inVain]).toEqual([[[origin, 500]], [origin]]);
  });

  it('claims a due probe once, however many deliveries are due with it', async () => {
    await sendMany(5, unanswered);
    nextProbeAt = new Date(0);
    claim = () => Promise.resolve(true);
    const answers = await Promise.all(Array.from({ length: 100 }, async () => enter()));
    expect(answers.filter((each) => typeof each === 'object')).toHaveLength(1);
    expect(claims).toBe(1);
  });

  it.each([
    ['was given to another worker', () => Promise.resolve(false)],
    ['could not be written', () => Promise.reject(new Error('no connection'))],
  ])('claims none for a moment after one that %s', async (_what, refused: () => Promise<boolean>) => {
    await sendMany(5, unanswered);
    nextProbeAt = new Date(0);
    claim = refused;
    for (let nr = 0; nr < 100; nr++) expect(await enter()).toBe('endpoint-parked');
    expect(claims).toBe(1);
    nowMs += 500;
    claim = () => Promise.resolve(true);
    expect(typeof (await enter())).toBe('object');
  });

  it('asks for a delivery that is alone before a probe is due, and not again for one that is not', async () => {
    await sendMany(5, unanswered);
    leftAloneUntil = new Date(0);
    claim = () => Promise.resolve(true);
    const alone = (await enter()) as Place;
    expect(alone.probes).toBe(origin);
    admission.giveBack(alone);
    claim = () => Promise.resolve(false);
    for (let nr = 0; nr < 9; nr++) {
      nowMs += 500;
      expect(await enter()).toBe('endpoint-parked');
    }
    expect(claims).toBe(2);
    nowMs += 1000;
    await enter();
    expect(claims).toBe(3);
  });

  it('lets a released probe go that comes while a delivery asks whether it is alone, and which it keeps from being sent', async () => {
    await sendMany(5, unanswered);
    leftAloneUntil = new Date(0);
    let refuse!: () => void;
    claim = () => new Promise((resolve) => (refuse = () => resolve(false)));
    const asking = enter();
    const probe = (await enter(delivery(true))) as Place;
    expect(probe.probes).toBe(origin);
    refuse();
    expect(await asking).toBe('endpoint-parked');
    expect(await enter(delivery(true))).toBe('endpoint-parked'); // that one is still under way
    expect(endedProbes).toEqual([]);
  });

  it('lets a released probe go right after a delivery that turned out not to be alone', async () => {
    await sendMany(5, unanswered);
    leftAloneUntil = new Date(0);
    claim = () => Promise.resolve(false);
    expect(await enter()).toBe('endpoint-parked');
    expect(((await enter(delivery(true))) as Place).probes).toBe(origin);
  });

  it('closes it again when a call goes well', async () => {
    await sendMany(5, unanswered);
    expect(await send(well, delivery(true))).toBe('sent');
    expect(closed).toEqual([origin]);
    expect(await send(well)).toBe('sent');
  });

  it('closes it again when its probe turns out to have arrived since it was parked, and not when it had before', async () => {
    await sendMany(5, troubled());
    const endingAsArrived = async (startedAt: number) => {
      nowMs += 60_000;
      const place = (await enter(delivery(true))) as Place;
      admission.arrivedBefore(place, startedAt);
      admission.giveBack(place);
      await new Promise((resolve) => setImmediate(resolve));
    };
    await endingAsArrived(99);
    expect(closed).toEqual([]);
    await endingAsArrived(101);
    expect(closed).toEqual([url]);
    expect(await send(well)).toBe('sent');
  });

  it('starts slowly where it was closed, and not where the ledger has kept it open', async () => {
    const startSlowly = vi.spyOn(Reflect.get(admission, 'rooms') as Rooms, 'startSlowly');
    await sendMany(5, unanswered);
    staysOpen = true;
    await send(well, delivery(true));
    expect(startSlowly).not.toHaveBeenCalled();
    await tick();
    staysOpen = false;
    nowMs += 500;
    await send(well, delivery(true));
    await tick();
    expect(startSlowly.mock.calls).toEqual([[origin]]);
  });

  it('closes the origin, not the URL, when the answer to a probe is an error', async () => {
    await sendMany(5, unanswered);
    await send(troubled(), delivery(true));
    expect(closed).toEqual([origin]);
    await sendMany(5, troubled());
    nowMs += 1000;
    await send(troubled(), delivery(true));
    expect([...opened.keys()]).toEqual([url]);
  });

  it('parks an endpoint that hangs before the first call times out, and holds what waits for it', async () => {
    for (let nr = 0; nr < 8; nr++) admission.begin((await enter()) as Place);
    const waiting: unknown[] = [];
    for (let ms = 0; ms < 2100; ms += 50) {
      nowMs += 50;
      void Promise.resolve(enter()).then((answer) => waiting.push(answer));
      await vi.advanceTimersByTimeAsync(50);
    }
    expect([...opened.keys()]).toEqual([origin]);
    expect(new Set(waiting)).toEqual(new Set(['endpoint-busy', 'endpoint-parked']));
    expect(waiting).toHaveLength(2100 / 50);
  });

  it('tries again to park an endpoint when that could not be written', async () => {
    failing = new Error('no connection');
    await sendMany(5, unanswered);
    failing = undefined;
    await send(unanswered);
    expect([...opened.keys()]).toEqual([origin]);
  });
});
