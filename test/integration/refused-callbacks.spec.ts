import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startNameServer, type NameServer } from '../../scripts/address-guard/name-server.mjs';
import { readSettings } from '../../src/config/settings.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import { RefusedCallbacks } from '../../src/subscriptions/refused-callbacks.service.js';
import type { ListedSubscription } from '../../src/subscriptions/subscription-directory.service.js';
import type { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';

const databaseUrl = 'postgres://db.example/heraut';

class Sparing extends RefusedCallbacks {
  protected override readonly bounds = { names: 3, atOnce: 2, withinMs: 60_000 };
}

class Hurried extends RefusedCallbacks {
  protected override readonly bounds = { names: 3, atOnce: 2, withinMs: 200 };
}

describe('the warning of subscriptions that are refused now', () => {
  let names: NameServer;
  let warned: ReturnType<typeof vi.spyOn>;

  beforeAll(async () => {
    names = await startNameServer();
    names.names.set('public.test', () => ['198.51.101.1']);
    names.names.set('private.test', () => ['10.0.0.1']);
    names.names.set('mixed.test', () => ['10.0.0.1', '198.51.101.1']);
  });
  afterAll(() => names.stop());

  beforeEach(() => {
    names.asked.length = 0;
    warned = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
  });
  afterEach(() => warned.mockRestore());

  function examine(
    urls: string[],
    settings: Record<string, string> = {},
    { Kind = RefusedCallbacks, lookUp = names.lookUp } = {},
  ): RefusedCallbacks {
    const read = readSettings({ DATABASE_URL: databaseUrl, AMQP_URL: 'amqp://rabbit.example', ...settings });
    const list = async (): Promise<readonly ListedSubscription[]> =>
      urls.map((callbackUrl) => ({ callbackUrl, disabledAt: null }) as ListedSubscription);
    return new Kind({ list } as SubscriptionsService, new Outbound(read, lookUp));
  }

  const urls = [
    'https://public.test/a',
    'https://private.test/a',
    'https://private.test/b',
    'http://mixed.test/a',
    'http://10.0.0.9:8080/a',
    'https://unknown.test/a',
  ];

  it('counts them, names their callbacks, and says what to set', async () => {
    await examine(urls).warn();
    expect(warned.mock.calls).toEqual([
      [
        {
          event: 'callbacks.refused',
          subscriptions: 3,
          of: 6,
          unexamined: 0,
          callbacks: ['http://10.0.0.9:8080', 'https://private.test'],
          settings: ['CALLBACK_ALLOWED_NETWORKS'],
        },
      ],
    ]);
  });

  it('is not given where nothing is refused', async () => {
    await examine(urls, { CALLBACK_ALLOWED_NETWORKS: '10.0.0.0/8' }).warn();
    await examine(urls, { CALLBACK_NETWORKS: 'any' }).warn();
    expect(warned.mock.calls).toEqual([]);
  });

  it('looks up no more names, and for no longer, than the start of a process may cost', async () => {
    const many = Array.from({ length: 5 }, (_, nr) => `http://private-${nr}.test/`);
    for (const url of many) names.names.set(new URL(url).hostname, () => ['10.0.0.1']);
    await examine([...many, 'http://10.0.0.1/'], {}, { Kind: Sparing }).warn();
    expect(names.asked).toHaveLength(3);
    expect(warned.mock.calls).toEqual([[expect.objectContaining({ subscriptions: 4, of: 6, unexamined: 2 })]]);
    await examine([...many, 'http://10.0.0.1/'], {}, { Kind: Hurried, lookUp: () => {} }).warn();
    expect(warned.mock.calls[1]).toEqual([expect.objectContaining({ subscriptions: 1, of: 6, unexamined: 5 })]);
  });

  it('keeps no process from starting, nor from ending', async () => {
    let waiting = 0;
    const lookUp = () => void waiting++; // the answer never comes
    const examining = examine(['http://private.test/'], {}, { lookUp });
    const warn = vi.spyOn(examining, 'warn');
    // Those that keep the process. Between the two counts no timer of anybody else is made: no turn of the loop ends.
    const timers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
    const before = timers();
    examining.onApplicationBootstrap();
    for (let step = 0; step < 1000 && waiting === 0; step++) await Promise.resolve();
    expect([waiting, timers()]).toEqual([1, before]);
    examining.onModuleDestroy();
    await expect(warn.mock.results[0]!.value).rejects.toMatchObject({ name: 'AbortError' });
    await new Promise(setImmediate);
    expect(warned.mock.calls).toEqual([]);
  });
});
