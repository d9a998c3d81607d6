import { beforeEach, describe, expect, it } from 'vitest';
import { v7 as uuidv7 } from 'uuid';
import type { Subscription } from '../subscriptions/subscription.js';
import { defaultAlertRules, ruleNames, withDefaults, type AlertRulesInput } from './alert-rules.js';
import { besideForMs, buildsSeen, fingerprintOf, thisBuild } from './builds.js';
import { changesOf } from './changes.js';
import { evaluate, type Observation } from './evaluate.js';
import { limitsToTell } from './fair-share.js';
import { mostSubjects } from './look.js';
import { memoryNames, type Memory } from './memory.js';

const start = Date.UTC(2026, 10, 22, 3);
const minuteMs = 60_000;
const at = (ms: number) => new Date(start + ms);

const quiet: Observation = {
  now: at(0),
  dead: undefined,
  oldestDue: undefined,
  failing: undefined,
  notMade: undefined,
  openFor: [],
  dueCount: 0,
  mostDue: 2000,
  roles: new Set(['api', 'worker', 'dispatcher']),
  disk: undefined,
};

const subscription = (id: string, parts: Partial<Subscription> = {}) =>
  ({
    id,
    ownerClientId: 'portal',
    callbackUrl: 'https://receiver.example/hook?key=hidden',
    credentials: {},
    disabledAt: null,
    pausedAt: null,
    ratePerSecond: null,
    ...parts,
  }) as Subscription;

interface Given {
  rules?: AlertRulesInput;
  memory?: Memory;
  subscriptions?: Subscription[];
  open?: string[];
}

function look(observed: Partial<Observation>, { rules = {}, memory = {}, subscriptions = [], open = [] }: Given = {}) {
  const known = { find: (id: string) => subscriptions.find((each) => each.id === id), all: () => subscriptions };
  return evaluate(withDefaults(rules), { ...quiet, ...observed }, memory, known, new Set(open));
}

const died = (subscriptionId: string, count = 1) => {
  const id = uuidv7();
  return { subscriptionId, count, oldestNotificationId: id, newestNotificationId: id, reason: 'HTTP 503' };
};

const dead = (
  found: ReturnType<typeof died>[],
  { after, upTo }: { after?: string; upTo?: string } = {},
): Partial<Observation> => ({ dead: { found, after, upTo } });

describe('the rules of alerts', () => {
  it('find nothing where nothing is wrong', () => {
    expect(look({}).findings).toEqual([]);
  });

  it('find dead letters by subscription, from as many as the rule says', () => {
    const subscriptions = [subscription('a'), subscription('b')];
    const { findings } = look(dead([died('a', 4), died('b', 5)]), {
      rules: { deadLetters: { count: 5 } },
      subscriptions,
    });
    expect(findings).toMatchObject([
      {
        rule: 'dead-letters',
        subject: 'subscription/b',
        details: { owner: 'portal', receiver: 'https://receiver.example', count: 5, reason: 'HTTP 503' },
      },
    ]);
    expect(JSON.stringify(findings)).not.toContain('hidden');
  });

  it('do not mention dead letters of a subscription that was deleted', () => {
    expect(look(dead([died('gone')])).findings).toEqual([]);
  });

  it('look for dead letters on behind where the last round ended, and end only what they saw', () => {
    const alert = (id: string) => ({ rule: 'dead-letters', subject: `subscription/${id}` }) as never;
    const part = look(dead([died('gone'), died('f')], { after: 'c', upTo: 'f' }));
    expect(part.memory.deadUpTo).toBe('f');
    expect(['c', 'd', 'f', 'g'].map((id) => part.isUnseen(alert(id)))).toEqual([true, false, false, true]);
    expect(changesOf([alert('c'), alert('d')], part).resolved).toEqual([alert('d')]);
    const last = look(dead([], { after: 'f' }), { memory: part.memory });
    expect(last.memory.deadUpTo).toBeUndefined();
    expect(['f', 'g'].map((id) => last.isUnseen(alert(id)))).toEqual([true, false]);
    expect(look({}, { rules: { deadLetters: { isEnabled: false } } }).isUnseen(alert('a'))).toBe(false);
  });

  describe('about subscriptions that fail', () => {
    const failing = (subscriptionId: string) => ({ subscriptionId, count: 3, since: at(0), reason: 'HTTP 401' });
    const observed = (ids: string[], parts: { after?: string; upTo?: string } = {}): Partial<Observation> => ({
      failing: { found: ids.map(failing), after: parts.after, upTo: parts.upTo },
    });
    const subjects = ({ findings }: ReturnType<typeof look>) => findings.map(({ rule, subject }) => [rule, subject]);

    it('say whose it is, how many wait, and the origin of its receiver only', () => {
      const { findings } = look(observed(['a']), { subscriptions: [subscription('a')] });
      expect(findings).toEqual([
        {
          rule: 'subscription-failing',
          subject: 'subscription/a',
          since: at(0),
          details: {
            subscriptionId: 'a',
            owner: 'portal',
            receiver: 'https://receiver.example',
            count: 3,
            reason: 'HTTP 401',
          },
        },
      ]);
    });

    it('leave out what an operator paused, what is disabled or deleted, and what the rule about endpoints tells of', () => {
      const paused = subscription('a', { pausedAt: at(0) });
      const disabled = subscription('b', { disabledAt: at(0) });
      const parked = subscription('d');
      const openFor = [{ address: 'https://receiver.example', openedAt: at(0), reason: 'ECONNREFUSED', failures: 5 }];
      const given = {
        subscriptions: [paused, disabled, parked],
        rules: { subscriptionDisabled: { isEnabled: false } },
      };
      const found = look({ ...observed(['a', 'b', 'c', 'd']), openFor }, given);
      expect(subjects(found)).toEqual([['endpoint-open', 'endpoint/https://receiver.example']]);
    });

    it('go on in the next round where one could not look at all, and end only what was looked at', () => {
      const alert = (id: string) => ({ rule: 'subscription-failing', subject: `subscription/${id}` }) as never;
      const part = look(observed([], { after: 'c', upTo: 'f' }));
      expect(part.memory.failingUpTo).toBe('f');
      expect(['c', 'd', 'f', 'g'].map((id) => part.isUnseen(alert(id)))).toEqual([true, false, false, true]);
      const last = look(observed([], { after: 'f' }));
      expect(last.memory.failingUpTo).toBeUndefined();
      expect(['f', 'g'].map((id) => last.isUnseen(alert(id)))).toEqual([true, false]);
      expect(look({}).isUnseen(alert('a'))).toBe(false);
    });

    it('open no more alerts than there may be of one rule, and keep those that are open', () => {
      const open = Array.from({ length: mostSubjects }, (_, nr) => `subscription-failing subscription/m${nr}`);
      const subscriptions = ['m0', 'new'].map((id) => subscription(id));
      expect(subjects(look(observed(['m0', 'new']), { subscriptions, open }))).toEqual([
        ['subscription-failing', 'subscription/m0'],
      ]);
      expect(subjects(look(observed(['m0', 'new']), { subscriptions, open: open.slice(1) }))).toHaveLength(1);
      expect(subjects(look(observed(['m0', 'new']), { subscriptions, open: open.slice(2) }))).toHaveLength(2);
      const others = open.map((key) => key.replace('subscription-failing', 'dead-letters'));
      const more = dead([died('m0'), died('new')]);
      expect(subjects(look(more, { subscriptions, open: others }))).toEqual([['dead-letters', 'subscription/m0']]);
      expect(subjects(look(more, { subscriptions, open }))).toHaveLength(2);
    });
  });

  describe('about calls that are not made', () => {
    const reason = 'EGRESS_PROXY: ECONNREFUSED';
    const afterMs = 600_000;
    const notMade = (acceptedAt: Date, id = 'a') => ({
      subscriptionId: id,
      count: 3,
      oldestNotificationId: uuidv7({ msecs: acceptedAt.getTime() }),
      reason,
    });
    const seen = (
      now: Date,
      found: ReturnType<typeof notMade>[],
      parts: { after?: string; upTo?: string } = {},
    ): Partial<Observation> => ({ now, notMade: { found, after: parts.after, upTo: parts.upTo } });
    const subscriptions = [subscription('a')];
    const known = { subscriptions, memory: { notMadeSince: start, notMadeFirst: { a: start } } };

    it('tell of one after the time of the rule, with the reason', () => {
      expect(look(seen(at(afterMs - 1), [notMade(at(0))]), known).findings).toEqual([]);
      expect(look(seen(at(afterMs), [notMade(at(0))]), known).findings).toEqual([
        {
          rule: 'calls-not-made',
          subject: 'subscription/a',
          since: at(0),
          details: { subscriptionId: 'a', owner: 'portal', receiver: 'https://receiver.example', count: 3, reason },
        },
      ]);
    });

    it('count no time before calls were not made, nor before a notification was accepted', () => {
      const old = [notMade(at(-3_600_000))];
      const first = look(seen(at(0), old), { subscriptions });
      expect(first.findings).toEqual([]);
      const { memory } = first;
      expect(look(seen(at(afterMs), old), { subscriptions, memory }).findings).toMatchObject([{ since: at(0) }]);
      expect(look(seen(at(afterMs), [notMade(at(1))]), { subscriptions, memory }).findings).toEqual([]);
      const over = look(seen(at(afterMs), []), { subscriptions, memory }).memory;
      expect(look(seen(at(afterMs + 1), old), { subscriptions, memory: over }).findings).toEqual([]);
    });

    it('count no time in which only calls for other subscriptions were not made', () => {
      const both = { subscriptions: [...subscriptions, subscription('b')], memory: known.memory };
      const later = at(3 * afterMs);
      const yesterday = notMade(at(-86_400_000), 'b');
      const first = look(seen(later, [notMade(at(0)), yesterday]), both);
      expect(first.findings).toMatchObject([{ subject: 'subscription/a', since: at(0) }]);
      const tenMinutesOn = { ...both, memory: first.memory };
      const second = look(seen(at(4 * afterMs), [notMade(at(0)), yesterday]), tenMinutesOn);
      expect(second.findings).toMatchObject([
        { subject: 'subscription/a', since: at(0) },
        { subject: 'subscription/b', since: later },
      ]);
      const madeAgain = look(seen(at(4 * afterMs), [notMade(at(0))]), { ...both, memory: second.memory }).memory;
      expect(madeAgain.notMadeFirst).toEqual({ a: start });
    });

    it('remember those that other rounds see, and count from the first call of all for those that are too many', () => {
      const memory = { notMadeSince: start, notMadeFirst: { a: start, c: start } };
      const part = look(seen(at(1), [notMade(at(0), 'd')], { after: 'b', upTo: 'd' }), { subscriptions, memory });
      expect(part.memory.notMadeFirst).toEqual({ a: start, d: start + 1 });
      const full = Object.fromEntries(Array.from({ length: mostSubjects }, (_, nr) => [`m${nr}`, start]));
      const given = { subscriptions, memory: { notMadeSince: start, notMadeFirst: full } };
      const found = look(seen(at(afterMs), [notMade(at(-1))], { upTo: 'a' }), given);
      expect(found.memory.notMadeFirst).toEqual(full);
      expect(found.findings).toMatchObject([{ subject: 'subscription/a', since: at(0) }]);
    });

    it('go on while one is not made, also where that is a new one', () => {
      const open = ['calls-not-made subscription/a'];
      const observed = seen(at(2 * afterMs), [notMade(at(2 * afterMs - 1))]);
      expect(look(observed, { ...known, open }).findings).toHaveLength(1);
      expect(look(observed, known).findings).toEqual([]);
    });

    it.each([
      [1, 331_000],
      [0.001, 1_330_000],
    ])('go on where the rate is %f, as all may be held for that when a round looks, for %i ms', (rate, forMs) => {
      const rated = [subscription('a', { ratePerSecond: rate })];
      const alert = { rule: 'calls-not-made', subject: 'subscription/a' } as never;
      const old = [notMade(at(-1))];
      // As a version before leaves it.
      let memory: Memory = known.memory;
      const round = (ms: number, found: typeof old, subscriptions = rated) => {
        const evaluated = look(seen(at(ms), found), { subscriptions, memory });
        ({ memory } = evaluated);
        return { resolved: changesOf([alert], evaluated).resolved.length, since: evaluated.findings[0]?.since };
      };
      expect(round(afterMs - 15_000, [])).toEqual({ resolved: 0, since: undefined });
      expect(round(afterMs, old)).toEqual({ resolved: 0, since: at(0) });
      const seenAgainMs = afterMs + forMs - 1;
      expect(round(seenAgainMs, [])).toEqual({ resolved: 0, since: undefined });
      expect(round(seenAgainMs, old)).toEqual({ resolved: 0, since: at(0) });
      const kept = memory;
      expect(round(seenAgainMs + forMs, [])).toEqual({ resolved: 1, since: undefined });
      expect([memory.notMadeFirst, memory.notMadeLast]).toEqual([{}, {}]);
      memory = kept;
      // Paused, it is of no concern to the rule.
      const paused = [subscription('a', { ratePerSecond: rate, pausedAt: at(0) })];
      expect(round(seenAgainMs + 1, old, paused)).toEqual({ resolved: 1, since: undefined });
    });

    it('count from now on after Postgres’ clock was set back', () => {
      const memory = { notMadeSince: start + 1, notMadeFirst: { a: start + 1 } };
      expect(look(seen(at(0), [notMade(at(0))]), { subscriptions, memory }).memory).toMatchObject({
        notMadeSince: start,
        notMadeFirst: { a: start },
      });
    });

    it('do not begin anew while others are made, where a round sees a part of very many', () => {
      const part = look(seen(at(1), [], { after: 'f' }), known);
      expect(part.memory.notMadeSince).toBe(start);
      const alert = { rule: 'calls-not-made', subject: 'subscription/a' } as never;
      expect([part.isUnseen(alert), look(seen(at(1), []), known).isUnseen(alert)]).toEqual([true, false]);
      expect(look(seen(at(1), [notMade(at(0))], { upTo: 'a' }), known).memory.notMadeUpTo).toBe('a');
    });

    it('leave out what an operator paused, and what is disabled or deleted', () => {
      const others = [subscription('b', { pausedAt: at(0) }), subscription('c', { disabledAt: at(0) })];
      const rules = { subscriptionDisabled: { isEnabled: false } };
      const found = ['b', 'c', 'd'].map((id) => notMade(at(0), id));
      expect(look(seen(at(afterMs), found), { ...known, subscriptions: others, rules }).findings).toEqual([]);
    });
  });

  it('find the oldest delivery late after the time of the rule, not before', () => {
    const oldestDue = { notificationId: 'n', subscriptionId: 's', state: 'queued' as const, since: at(0) };
    expect(look({ now: at(299_999), oldestDue }).findings).toEqual([]);
    expect(look({ now: at(300_000), oldestDue }).findings).toEqual([
      {
        rule: 'oldest-due',
        subject: 'deliveries',
        since: at(0),
        details: { notificationId: 'n', subscriptionId: 's', state: 'queued' },
      },
    ]);
  });

  it('name an endpoint as it is stored, and show its origin only', () => {
    const address = 'https://receiver.example/hook?key=hidden';
    const [found] = look({ openFor: [{ address, openedAt: at(0), reason: 'HTTP 500', failures: 5 }] }).findings;
    expect(found).toMatchObject({ subject: `endpoint/${address}`, details: { receiver: 'https://receiver.example' } });
  });

  it('find a role missing once no process had it for the time of the rule, in rounds of whatever process', () => {
    const roles = new Set(['api', 'worker']);
    const first = look({ roles });
    expect(first.findings).toEqual([]);
    const { findings } = look({ roles, now: at(minuteMs) }, { memory: first.memory });
    expect(findings).toEqual([
      { rule: 'role-missing', subject: 'role/dispatcher', since: at(0), details: { role: 'dispatcher' } },
    ]);
    const back = look({ now: at(2 * minuteMs) }, { memory: first.memory });
    expect([back.findings, back.memory.missingSince]).toEqual([[], {}]);
    const rules = { roleMissing: { roles: ['api' as const, 'worker' as const] } };
    expect(look({ roles, now: at(minuteMs) }, { memory: first.memory, rules }).findings).toEqual([]);
  });

  it('find a role that is missing, and a backlog that grows, also after Postgres’ clock was set back', () => {
    const rules = {
      roleMissing: { roles: ['worker' as const], afterSeconds: 60 },
      backlogGrowing: { forSeconds: 300 },
    };
    const ahead = start + 86_400_000;
    const memory = { missingSince: { worker: ahead }, backlog: [{ at: ahead, count: 5000, dueSince: ahead }] };
    const roles = new Set<string>();
    const back = look({ roles, dueCount: 5000, now: at(0) }, { memory, rules });
    expect(back.memory).toMatchObject({ missingSince: { worker: start }, backlog: [{ at: start, count: 5000 }] });
    const later = look({ roles, now: at(minuteMs) }, { memory: back.memory, rules });
    expect(later.findings).toMatchObject([{ rule: 'role-missing', since: at(0) }]);
  });

  it('find a database that is larger than it may be', () => {
    const rules = { ledgerDisk: { maxBytes: 1_000_000 } };
    expect(look({ disk: { at: start, bytes: 1_000_000 } }, { rules }).findings).toEqual([]);
    expect(look({ disk: { at: start, bytes: 1_000_001 } }, { rules }).findings).toMatchObject([
      { rule: 'ledger-disk', subject: 'ledger', details: { bytes: 1_000_001, maxBytes: 1_000_000 } },
    ]);
  });

  it('find subscriptions that are disabled', () => {
    const subscriptions = [subscription('a', { disabledAt: at(5) }), subscription('b')];
    expect(look({}, { subscriptions }).findings).toMatchObject([
      { rule: 'subscription-disabled', subject: 'subscription/a', since: at(5) },
    ]);
  });

  it('leave room for others where one application has more in trouble than a rule may have alerts', () => {
    const hers = Array.from({ length: 600 }, (_, nr) =>
      subscription(`a${nr}`, { ownerClientId: 'large', disabledAt: at(nr) }),
    );
    const other = subscription('b', { disabledAt: at(1000) });
    const first = look(dead(hers.map(({ id }) => died(id))), { subscriptions: hers });
    const open = first.findings.map(({ rule, subject }) => `${rule} ${subject}`);
    const counts = (rule: string) => open.filter((key) => key.startsWith(rule)).length;
    expect([counts('dead-letters'), counts('subscription-disabled')]).toEqual([251, 251]);
    const leftOut = { leftOut: 349, reason: 'share', owner: 'large' };
    expect(first.leftOut).toEqual({ 'dead-letters': leftOut, 'subscription-disabled': leftOut });
    const given = { subscriptions: [...hers, other], open };
    const later = look(dead([...hers, other].map(({ id }) => died(id))), given);
    const { opened, resolved } = changesOf(
      open.map((key) => ({ rule: key.split(' ')[0], subject: key.split(' ')[1] }) as never),
      later,
    );
    expect(opened.map(({ rule, subject }) => `${rule} ${subject}`)).toEqual([
      'dead-letters subscription/b',
      'subscription-disabled subscription/b',
    ]);
    expect(resolved).toEqual([]);
  });

  it('find the first one of each application though as many are open as a rule may have, up to a thousand', () => {
    const ofRule = (nr: number) => `subscription-disabled subscription/large${nr}`;
    const of = (owner: string, count: number) =>
      Array.from({ length: count }, (_, nr) =>
        subscription(`${owner}${nr}`, { ownerClientId: owner, disabledAt: at(nr) }),
      );
    const hers = of('large', mostSubjects + 20);
    const open = hers.slice(0, mostSubjects).map((_, nr) => ofRule(nr));
    const others = Array.from({ length: 600 }, (_, nr) => of(`small${nr}-`, 2)).flat();
    const nine = others.slice(0, 18);
    const some = look({}, { subscriptions: [...hers, ...nine], open });
    const ids = some.findings.map(({ subject }) => subject).filter((subject) => !subject.includes('large'));
    expect(ids).toEqual(nine.filter((_, nr) => nr % 2 === 0).map(({ id }) => `subscription/${id}`));
    expect(some.leftOut).toEqual({ 'subscription-disabled': { leftOut: 29, reason: 'rule', owner: 'large' } });
    const all = look({}, { subscriptions: [...hers, ...others], open });
    expect(all.findings).toHaveLength(1000);
  });

  it('find no more endpoints than may be open, those that were parked first', () => {
    const openFor = Array.from({ length: mostSubjects + 1 }, (_, nr) => ({
      address: `https://r${nr}.example`,
      openedAt: at(nr),
      reason: '',
      failures: 1,
    }));
    const { findings, leftOut } = look({ openFor });
    expect([findings.length, findings.at(-1)!.since, leftOut]).toEqual([
      500,
      at(499),
      { 'endpoint-open': { leftOut: 1, reason: 'rule', owner: null } },
    ]);
  });

  it('that have as many alerts as they may are told of once an hour', () => {
    const first = limitsToTell({ 'dead-letters': 3 }, start);
    expect(first.rules).toEqual(['dead-letters']);
    const second = limitsToTell({ 'dead-letters': 3, 'endpoint-open': 1 }, start + minuteMs, first.toldAt);
    expect(second.rules).toEqual(['endpoint-open']);
    expect(limitsToTell({ 'dead-letters': 3 }, start + 60 * minuteMs, second.toldAt).rules).toEqual(['dead-letters']);
    expect(limitsToTell({ 'dead-letters': 3 }, start - minuteMs, first.toldAt).rules).toEqual(['dead-letters']);
  });

  describe('beside those of another build', () => {
    const alert = { rule: 'of-tomorrow', subject: 'subscription/a' } as never;
    const tomorrow = fingerprintOf([...ruleNames, 'of-tomorrow'], [...memoryNames, 'ofTomorrow']);
    let memory: Memory;
    beforeEach(() => void (memory = {}));
    /** @returns whether the alert goes on, and its data are handed on */
    const round = (ms: number): [boolean, boolean] => {
      const evaluated = look({ now: at(ms) }, { memory });
      ({ memory } = evaluated);
      return [changesOf([alert], evaluated).resolved.length === 0, 'ofTomorrow' in memory];
    };
    const roundOfTomorrow = (ms: number): void => {
      const { builds } = buildsSeen(at(ms), memory, tomorrow);
      memory = { ...memory, ofTomorrow: { a: 1 }, builds } as Memory;
    };

    it('leave to it what only that one knows, until it has had no round for ten minutes', () => {
      expect(tomorrow).not.toBe(thisBuild);
      round(0);
      for (let time = besideForMs; time < 3 * besideForMs; time += besideForMs) {
        roundOfTomorrow(time);
        expect([round(time + 1), round(time + besideForMs - 1)]).toEqual([
          [true, true],
          [true, true],
        ]);
      }
      expect(round(3 * besideForMs)).toEqual([false, false]);
      expect(Object.keys(memory.builds!)).toEqual([thisBuild]);
    });

    it('leave it to it also where it has not been heard of yet, for as long', () => {
      memory = { ofTomorrow: 1 } as Memory;
      for (const ms of [0, besideForMs / 2, besideForMs - 1]) expect(round(ms)).toEqual([true, true]);
      expect(round(besideForMs)).toEqual([false, false]);
      // It has had no round for so long that it must have missed others.
      memory = { ...memory, ofTomorrow: 1 } as Memory;
      expect(round(2 * besideForMs)).toEqual([true, true]);
    });

    it('remember a few of them, and count from now on after Postgres’ clock was set back', () => {
      for (let nr = 0; nr < 10; nr++)
        memory = { ofTomorrow: 1, builds: buildsSeen(at(nr), memory, `build-${nr}`).builds } as Memory;
      round(10);
      expect(Object.keys(memory.builds!)).toHaveLength(6);
      expect(memory.builds).toHaveProperty('build-9');
      const minusHour = -3_600_000;
      expect(round(minusHour)).toEqual([true, true]);
      expect(round(minusHour + besideForMs / 2)).toEqual([true, true]);
      expect(round(minusHour + besideForMs)).toEqual([false, false]);
    });
  });

  it('find nothing by a rule that is off', () => {
    const off = { isEnabled: false };
    const rules = Object.fromEntries(
      Object.entries(defaultAlertRules)
        .filter(([, rule]) => typeof rule === 'object' && rule !== null)
        .map(([name]) => [name, off]),
    ) as AlertRulesInput;
    const subscriptions = [subscription('a', { disabledAt: at(5) })];
    const observed: Partial<Observation> = {
      now: at(3_600_000),
      ...dead([died('a', 100)]),
      oldestDue: { notificationId: 'n', subscriptionId: 's', state: 'waiting', since: at(0) },
      openFor: [{ address: 'https://a', openedAt: at(0), reason: '', failures: 1 }],
      roles: new Set<string>(),
      disk: { at: start, bytes: 1e15 },
    };
    const memory = { missingSince: { worker: start }, backlog: [{ at: start, count: 5000, dueSince: start }] };
    expect(look({ ...observed, dueCount: 9999 }, { rules, subscriptions, memory }).findings).toEqual([]);
    expect(new Set(look(observed, { subscriptions, memory }).findings.map(({ rule }) => rule)).size).toBe(6);
  });
});

describe('the backlog', () => {
  const rules = { backlogGrowing: { count: 1000, forSeconds: 300 } };

  /** Rounds of 15 seconds; `count` at each minute. @returns the minutes in which it was found */
  function rounds(counts: number[], dueSince: (ms: number) => number = () => 0, open: string[] = []) {
    let memory: Memory = {};
    const found = new Set<number>();
    for (let round = 0; round < counts.length * 4; round++) {
      const minute = Math.floor(round / 4);
      const since = at(dueSince(round * 15_000));
      const oldestDue = { notificationId: 'n', subscriptionId: 's', state: 'waiting' as const, since };
      const given = { rules: { ...rules, oldestDue: { isEnabled: false } }, memory, open };
      const evaluated = look({ now: at(round * 15_000), dueCount: counts[minute]!, oldestDue }, given);
      memory = evaluated.memory;
      if (evaluated.findings.length > 0) found.add(minute);
    }
    return [...found];
  }

  it('grows where it is more than five minutes ago, and was never small in between', () => {
    expect(rounds([1000, 1100, 1200, 1300, 1400, 1500, 1600])).toEqual([5, 6]);
    expect(rounds([1000, 1100, 999, 1300, 1400, 1500, 1600])).toEqual([]);
    expect(rounds([1600, 1500, 1400, 1300, 1200, 1100, 1000])).toEqual([]);
  });

  it('that is larger than was counted grows where its oldest delivery gets older', () => {
    const many = Array.from({ length: 7 }, () => 2000);
    expect(rounds(many, () => 0)).toEqual([5, 6]);
    expect(rounds(many, (ms) => ms)).toEqual([]);
  });

  it('once found is not over while it only shrinks', () => {
    expect(rounds([1600, 1200, 1000, 999], () => 0, ['backlog-growing deliveries'])).toEqual([0, 1, 2]);
  });

  it('of an hour is remembered by a dozen samples', () => {
    const hour = { ...rules, backlogGrowing: { count: 1000, forSeconds: 3600 } };
    let memory: Memory = {};
    for (let minute = 0; minute < 90; minute++)
      memory = look(
        { now: at(minute * minuteMs), dueCount: 99_999, oldestDue: undefined },
        { rules: hour, memory },
      ).memory;
    expect(memory.backlog!.length).toBeGreaterThan(9);
    expect(memory.backlog!.length).toBeLessThan(13);
  });
});
