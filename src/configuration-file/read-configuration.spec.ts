import { expect, it } from 'vitest';
import type { EntityManager } from 'typeorm';
import { turnsDuring } from '../../test/support/turns-during.js';
import type { InvalidParam } from '../infra/http/problem.js';
import type { Outbound } from '../outbound/outbound.service.js';
import { CallbackRules } from './callback-rules.js';
import { Planning } from './planning.js';
import { readConfiguration } from './read-configuration.js';

const subscriptions = Array.from({ length: 20_000 }, (_, nr) => ({
  id: `00000000-0000-4000-8000-${String(nr).padStart(12, '0')}`,
  callbackUrl: `http://192.0.2.1/${nr}`,
  authorization: { kind: 'verbatim', auth: 'Bearer x' },
  channels: [{ channel: 'cases', filters: { kind: `${nr}` } }],
}));

it('a name that cannot be kept is refused, in place of an entry without it', async () => {
  const problems: InvalidParam[] = [];
  const filters = JSON.parse('{ "__proto__": "b" }') as object;
  await readConfiguration(
    { subscriptions: [{ ...subscriptions[0], channels: [{ channel: 'cases', filters }] }] },
    problems,
  );
  expect(problems).toMatchObject([{ name: 'subscriptions.0.channels.0.filters.__proto__', code: 'invalid' }]);
});

it('fields of a deduplication that cannot be stored are refused', async () => {
  const problems: InvalidParam[] = [];
  const fields = ['kenmerken.a\u0000b', 'kenmerken.\ud83d', 'kenmerken.kind'];
  await readConfiguration({ channels: [{ name: 'cases', deduplication: { fields } }] }, problems);
  expect(problems.map(({ name }) => name)).toEqual([
    'channels.0.deduplication.fields.0',
    'channels.0.deduplication.fields.1',
  ]);
});

it('thousands of entries, and their callbacks, are checked while this process goes on with its work', async () => {
  const problems: InvalidParam[] = [];
  const read = await turnsDuring(readConfiguration({ subscriptions }, problems));
  const entries = read.result.subscriptions!;
  expect([entries.length, entries.at(-1)!.name, problems]).toEqual([20_000, 'subscriptions.19999', []]);

  const refused: string[] = [];
  const outbound = {
    refusalOf: async ({ pathname }: URL) => {
      if (pathname !== '/7') return undefined;
      refused.push(pathname);
      return new Error('not here');
    },
  } as unknown as Outbound;
  const options = { isPruning: false, caller: undefined, looksUpCallbacks: true, nowMs: 0 };
  const planning = new Planning({} as EntityManager, read.result, problems, options);
  const checked = await turnsDuring(new CallbackRules(outbound).check(planning, entries));
  expect(refused).toEqual(['/7']);
  expect(problems).toMatchObject([{ name: 'subscriptions.7.callbackUrl', code: 'invalid-callback-url' }]);
  expect(Math.min(read.turns, checked.turns)).toBeGreaterThan(1);
});
