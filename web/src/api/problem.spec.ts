import { expect, it } from 'vitest';
import { isRefusedForNow, isUnanswered, mayBeDone, readProblem, Unreachable } from './problem.ts';

const of = (status: number, body?: object) => readProblem(new Response(null, { status }), body);

it.each([
  ['nothing answers', new Unreachable(new Error('reset')), 'unanswered'],
  ['a proxy did not get an answer', of(504), 'unanswered'],
  ['a proxy got a broken answer', of(502), 'unanswered'],
  ['a proxy has nobody to ask', of(503), 'unanswered'],
  ['Heraut says that it has too much to do', of(429, { code: 'throttled' }), 'refused for now'],
  ['Heraut says that a statement took too long', of(503, { code: 'service_unavailable' }), 'refused for now'],
  ['it was refused', of(400, { code: 'invalid' }), 'neither'],
  ['Heraut is at fault', of(500, { code: 'error' }), 'neither'],
])('where %s, it is known whether that is an answer, and whether one of this moment', (_, error, expected) => {
  expect(isUnanswered(error)).toBe(expected === 'unanswered');
  expect(isRefusedForNow(error)).toBe(expected === 'refused for now');
});

it.each([
  ['nothing answers', new Unreachable(new Error('reset')), true],
  ['Heraut is at fault', of(500, { code: 'internal' }), true],
  ['the database is out of reach', of(503, { code: 'database-unavailable' }), true],
  ['the first try is still under way', of(409, { code: 'idempotency-key-in-flight' }), true],
  ['it was refused', of(400, { code: 'invalid' }), false],
  ['it was not confirmed', of(409, { code: 'selection-not-confirmed' }), false],
])('where %s, it is known whether what was asked for may be done', (_, error, expected) => {
  expect(mayBeDone(error)).toBe(expected);
});
