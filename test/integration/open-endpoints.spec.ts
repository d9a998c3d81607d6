import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomBytes } from 'node:crypto';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('endpoints that are found out at the same time, in the $name stack', (stack) => {
  let test: TestLedger;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
  });
  afterAll(() => test.close());
  afterEach(() => vi.restoreAllMocks());

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

  it('are told of, and have been opened and closed, although the look that follows fails', async () => {
    const address = 'http://looked-at.example';
    const told: string[] = [];
    const events = new OperationalEvents();
    events.onReport((event) => told.push(event.event));
    const endpoints = new OpenEndpoints(test.postgres, events);
    const away = () => vi.spyOn(endpoints, 'refresh').mockRejectedValueOnce(new Error('away'));
    away();
    await endpoints.open(address, 'HTTP 500', 5);
    away();
    expect(await endpoints.reset([address], () => Promise.resolve())).toBe(true);
    expect(told).toEqual(['endpoint.opened', 'endpoint.closed']);
    await endpoints.open(address, 'HTTP 500', 5);
    away();
    expect(await endpoints.close(address)).toBe(true);
    await endpoints.onApplicationShutdown();
  });
});
