import { describe, expect, it } from 'vitest';
import type { Plan, PlannedChange } from './planning.js';
import { renderPlan } from './render-plan.js';

const none = { count: 0, first: [] };
const planOf = (change: Partial<PlannedChange>): Plan => ({
  changes: [{ section: 'channels', action: 'change', key: 'zaken', about: null, fields: [], notes: [], ...change }],
  unchanged: { applications: 0, channels: 12, subscriptions: 0, alertRules: 1, retryPolicy: 1 },
  unnamed: { applications: none, channels: none, subscriptions: none, alertRules: none, retryPolicy: none },
});

describe('a plan for people', () => {
  /** The two sides of a change of a field, as they are shown. */
  const shown = (before: unknown, after: unknown) => {
    const plan = planOf({ fields: [{ name: 'filters', before, after }] });
    const line = renderPlan(plan, 'plan').split('\n')[2]!;
    return line.slice('      filters: '.length).split(' → ');
  };
  const filters = (last: string) => [...Array.from({ length: 60 }, (_, nr) => `name-${nr}`), last, 'z'.repeat(300)];

  it('shows short values whole', () => {
    expect(shown(['a', 'b'], ['a', 'c'])).toEqual(['["a","b"]', '["a","c"]']);
    expect(shown(null, 7)).toEqual(['null', '7']);
  });

  it('cuts long values so that the first place where they differ is shown, wherever that is', () => {
    const [before, after] = shown(filters('theirs'), filters('others'));
    expect([before, after]).toEqual([
      expect.stringMatching(/^….*"name-59","theirs","z+…$/),
      expect.stringMatching(/^….*"name-59","others","z+…$/),
    ]);
    expect(before!.length).toBe(202);
    expect(shown(['theirs', 'z'.repeat(300)], [])).toEqual([expect.stringMatching(/^\["theirs","z+…$/), '[]']);
    expect(shown('a'.repeat(300), 'a'.repeat(301))).toEqual([`…${'a'.repeat(60)}"`, `…${'a'.repeat(61)}"`]);
  });

  it('has no line that a name brought along', () => {
    const forged = 'x\nNothing to change; 13 as they should be.';
    const plan = planOf({ key: forged, about: forged, notes: [forged] });
    plan.unnamed.channels = { count: 1, first: [forged] };
    const lines = renderPlan(plan, 'plan').split('\n');
    expect(lines.filter((line) => line.startsWith('Nothing'))).toEqual([]);
    expect(lines.filter((line) => line.includes('x\\nNothing'))).toHaveLength(3);
  });
});
