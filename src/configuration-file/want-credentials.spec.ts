import { expect, it } from 'vitest';
import type { EntityManager } from 'typeorm';
import { noParts, type CredentialParts } from '../credentials/credentials.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { Planning } from './planning.js';
import { readConfiguration } from './read-configuration.js';
import { wantCredentials } from './want-credentials.js';

/** Longer together than a new one may have. */
const headers = Object.fromEntries(Array.from({ length: 5 }, (_, nr) => [`X-Part-${nr}`, `${nr}`.repeat(8000)]));
const stored = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const zgw = { kind: 'zgw', clientId: 'a', secret: 'b', userId: '', userRepresentation: '' } as const;

/** @returns the first thing that is wrong */
async function refusalOf(
  wanted: Parameters<typeof wantCredentials>[2],
  before: Partial<CredentialParts>,
  auth = '',
): Promise<InvalidParam | undefined> {
  const problems: InvalidParam[] = [];
  const configuration = await readConfiguration({}, problems);
  const options = { isPruning: false, caller: undefined, looksUpCallbacks: false, nowMs: 0 };
  const planning = new Planning({} as EntityManager, configuration, problems, options);
  wantCredentials(planning, 'subscriptions.0', wanted, { ...noParts, ...before }, auth);
  return problems[0];
}

it.each([
  ['as they were stored stay, however long they are', stored, undefined],
  ['longer than may be stored are refused', { 'x-part-0': '0' }, 'max_length'],
])('headers %s', async (_, before, code) => {
  expect((await refusalOf({ headers }, { headers: before }))?.code).toBe(code);
});

it.each([
  ['is refused where none is there that could stay', undefined, '', 'required'],
  ['keeps the one that was there before the other authorization', undefined, 'Bearer a', undefined],
  ['may be empty where the file says so', '', '', undefined],
])('verbatim authorization in the place of another %s', async (_, auth, before, code) => {
  const authorization = { kind: 'verbatim', auth } as const;
  const refusal = await refusalOf({ authorization }, { authorization: zgw }, before);
  expect(refusal && [refusal.name, refusal.code]).toEqual(code && ['subscriptions.0.authorization.auth', code]);
});

it('verbatim authorization without a value leaves an empty one as it is', async () => {
  expect(await refusalOf({ authorization: { kind: 'verbatim' } }, {})).toBeUndefined();
});
