import { expect, it } from 'vitest';
import type { AlertRules } from './alerts.ts';
import { isComplete, switched, type TypedRules } from './typed-rules.ts';

const saved: AlertRules = {
  deadLetters: { isEnabled: true, count: 1 },
  oldestDue: { isEnabled: true, afterSeconds: 900 },
  endpointOpen: { isEnabled: true, afterSeconds: 600 },
  backlogGrowing: { isEnabled: true, count: 1000, forSeconds: 600 },
  roleMissing: { isEnabled: true, roles: [], afterSeconds: 60 },
  ledgerDisk: { isEnabled: true, maxBytes: 50 },
  subscriptionFailing: { isEnabled: false, afterSeconds: 3600 },
  callsNotMade: { isEnabled: true, afterSeconds: 600 },
  subscriptionDisabled: { isEnabled: true },
  repeatAfterHours: 24,
  groupSeconds: 60,
  tellsOwners: false,
};

it.each<[Partial<TypedRules>, boolean]>([
  [{}, true],
  [{ repeatAfterHours: null }, true],
  [{ groupSeconds: null }, false],
  [{ deadLetters: { isEnabled: true, count: null } }, false],
  [{ backlogGrowing: { isEnabled: true, count: 1000, forSeconds: null } }, false],
  [{ ledgerDisk: { isEnabled: true, maxBytes: null } }, false],
  [{ ledgerDisk: { isEnabled: true, maxBytes: 0 } }, true],
])('rules with %j instead can be saved: %s', (typed, is) => {
  expect(isComplete({ ...saved, ...typed })).toBe(is);
});

it('a rule that is switched off has its saved number again where the field is empty, and the typed one otherwise', () => {
  const typed = { isEnabled: true, count: null, forSeconds: 120 };
  expect(switched<TypedRules['backlogGrowing']>(typed, saved.backlogGrowing, false)).toEqual({
    isEnabled: false,
    count: 1000,
    forSeconds: 120,
  });
});
