import { describe, expect, it } from 'vitest';
import { judgeThen } from './judge.js';
import type { WithPast } from './past-version.js';

const [morning, noon, evening] = [1_000_000, 2_000_000, 3_000_000];
const about = (kind: string) => [{ channel: 'cases', filters: { kind } }];
const cases = { channel: 'cases', characteristics: new Map([['kind', 'a']]) };
const subscription = (parts: Partial<WithPast> = {}): WithPast => ({
  channels: about('a'),
  disabledAt: null,
  createdAt: 0,
  deletedAt: null,
  changes: [],
  ...parts,
});

const verdict = (
  parts: Partial<WithPast>,
  hasDelivery = false,
  acceptedAt = noon,
  replaceableUntil: number | null = null,
) => judgeThen(subscription(parts), cases, { acceptedAt, replaceableUntil }, hasDelivery).verdict;

describe('a subscription is judged as it was when the notification was accepted:', () => {
  it.each<[string, Partial<WithPast>, string]>([
    ['unchanged', {}, 'matched'],
    ['changed since', { changes: [{ at: evening, before: { channels: about('b') } }] }, 'filters-not-met'],
    ['changed before', { changes: [{ at: morning, before: { channels: about('b') } }] }, 'matched'],
    [
      'changed twice since',
      {
        channels: about('c'),
        changes: [
          { at: noon + 5000, before: { channels: about('a') } },
          { at: evening, before: { channels: about('b') } },
        ],
      },
      'matched',
    ],
    ['another channel was added since', { changes: [{ at: evening, before: { channels: [] } }] }, 'not-subscribed'],
    ['enabled since', { changes: [{ at: evening, before: { disabledAt: '2026-11-01T00:00:00.000Z' } }] }, 'disabled'],
    [
      'disabled since',
      { disabledAt: '2026-11-01T00:00:00.000Z', changes: [{ at: evening, before: { disabledAt: null } }] },
      'matched',
    ],
    ['made later', { createdAt: evening }, 'created-later'],
    ['deleted since', { deletedAt: evening, changes: [{ at: evening, before: { channels: about('a') } }] }, 'matched'],
    ['deleted before', { deletedAt: morning }, 'deleted-before'],
    [
      'deleted since, and made again under its id',
      {
        createdAt: evening,
        channels: about('c'),
        changes: [
          { at: noon + 5000, before: { channels: about('a'), disabledAt: null }, done: 'deleted' },
          { at: evening, before: null, done: 'created' },
        ],
      },
      'matched',
    ],
    [
      'deleted before, and made again later',
      {
        createdAt: evening,
        changes: [
          { at: noon + 5000, before: null, done: 'created' },
          { at: noon + 6000, before: { channels: about('a'), disabledAt: null }, done: 'deleted' },
          { at: evening, before: null, done: 'created' },
        ],
      },
      'created-later',
    ],
  ])('%s', (_, parts, expected) => {
    expect(verdict(parts, expected === 'matched')).toBe(expected);
  });

  it('where it was changed at that moment, the ledger tells which it was', () => {
    const changed = { changes: [{ at: noon - 3, before: { channels: about('b') } }] };
    expect(verdict(changed, true)).toBe('matched');
    expect(verdict(changed, false)).toBe('filters-not-met');
    expect(verdict({ createdAt: noon + 3 }, true)).toBe('matched');
  });

  it('where it was changed at another time, the ledger changes nothing', () => {
    expect(verdict({ createdAt: evening }, true)).toBe('created-later');
    expect(verdict({}, false)).toBe('matched');
  });

  it('where the notification could be replaced after the change, it may have been matched again', () => {
    const changed = { changes: [{ at: noon + 500_000, before: { channels: about('b') } }] };
    expect(verdict(changed, true, noon, evening)).toBe('matched');
    expect(verdict(changed, true, noon, noon + 100_000)).toBe('filters-not-met');
  });
});

describe('of a notification whose body was erased', () => {
  const erased = { channel: 'cases', characteristics: undefined };
  const judge = (channels: WithPast['channels'], hasDelivery: boolean) =>
    judgeThen(subscription({ channels }), erased, { acceptedAt: noon, replaceableUntil: null }, hasDelivery);

  it('only an entry without demands is known to be met', () => {
    expect(judge(about('a'), true)).toEqual({ verdict: 'unknown', entries: [] });
    expect(judge([...about('a'), ...about('*')], true)).toMatchObject({
      verdict: 'matched',
      entries: [{ number: 2, isMet: true }],
    });
    expect(judge([{ channel: 'other', filters: {} }], false).verdict).toBe('not-subscribed');
  });
});
