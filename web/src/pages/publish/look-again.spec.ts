import { expect, it } from 'vitest';
import { ApiProblem } from '../../api/problem.ts';
import type { DeliveryState } from '../../parts/delivery-state.tsx';
import { lookAgainMs } from './look-again.ts';

const problem = (status: number) => new ApiProblem({ status, code: '', title: '', detail: '', invalidParams: [] });
const those = (...open: DeliveryState[]) => open;

it.each([
  ['soon while one is on its way', those('sending', 'waiting'), null, 700],
  ['soon while nothing is known yet', undefined, null, 700],
  ['later while all wait', those('waiting', 'held'), null, 5_000],
  ['later while Heraut is in trouble', undefined, problem(500), 5_000],
  ['later while Heraut is in trouble, also where one was on its way', those('sending'), problem(500), 5_000],
  ['never when all have ended', those(), null, false],
  ['never when the ledger does not have it', undefined, problem(404), false],
])('what became of a notification is looked at %s', (_, open, error, expected) => {
  expect(lookAgainMs(open, error)).toBe(expected);
});
