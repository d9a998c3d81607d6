import { expect, it } from 'vitest';
import type { EntityManager } from 'typeorm';
import { noParts } from '../credentials/credentials.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { Planning } from './planning.js';
import { readConfiguration } from './read-configuration.js';
import { wantCredentials } from './want-credentials.js';

/** Longer together than a new one may have. */
const headers = Object.fromEntries(Array.from({ length: 5 }, (_, nr) => [`X-Part-${nr}`, `${nr}`.repeat(8000)]));
const stored = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

it.each([
  ['as they were stored stay, however long they are', stored, undefined],
  ['longer than may be stored are refused', { 'x-part-0': '0' }, 'max_length'],
])('headers %s', async (_, before, code) => {
  const problems: InvalidParam[] = [];
  const configuration = await readConfiguration({}, problems);
  const options = { isPruning: false, caller: undefined, looksUpCallbacks: false, nowMs: 0 };
  const planning = new Planning({} as EntityManager, configuration, problems, options);
  wantCredentials(planning, 'subscriptions.0', { headers }, { ...noParts, headers: before });
  expect(problems[0]?.code).toBe(code);
});
