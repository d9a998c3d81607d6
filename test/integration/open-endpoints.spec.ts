import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomBytes } from 'node:crypto';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('endpoints that are found out at the same time, in the $name stack', (stack) => {
  let test: TestLedger;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
  });
  afterAll(() => test.close());

  it.each([3000, 20_000])(
    'are opened although the address of one has %i bytes, too many for an index',
    async (length) => {
      const endpoints = new OpenEndpoints(test.postgres, test.events);
      const long = `http://long.example/${randomBytes(length).toString('hex').slice(length)}`;
      const [one, another] = [`http://one.example/${length}`, `http://another.example/${length}`];
      const asked = [one, long, another].map((address) => endpoints.open(address, 'HTTP 500', 5));
      const states = (await Promise.allSettled(asked)).map(({ status }) => status);
      expect(states).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect([endpoints.all.has(one), endpoints.all.has(another)]).toEqual([true, true]);
      await endpoints.onApplicationShutdown();
    },
  );
});
