import { expect, it } from 'vitest';
import { isUnanswered, readProblem, Unreachable } from './problem.ts';

const of = (status: number, body?: object) => readProblem(new Response(null, { status }), body);

it.each([
  ['nothing answers', new Unreachable(new Error('reset')), true],
  ['a proxy did not get an answer', of(504), true],
  ['a proxy got a broken answer', of(502), true],
  ['it was refused', of(400, { code: 'invalid' }), false],
  ['Heraut says that it has too much to do', of(429, { code: 'throttled' }), false],
])('where %s, it is known whether the answer may have been lost', (_, error, expected) => {
  expect(isUnanswered(error)).toBe(expected);
});
