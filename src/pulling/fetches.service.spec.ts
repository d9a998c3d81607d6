import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Config } from '../config/config.module.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { Fetches } from './fetches.service.js';

const never = new AbortController().signal;

describe('those who fetch', () => {
  let fetches: Fetches;
  beforeEach(() => {
    vi.useFakeTimers();
    const settings = { DATABASE_POOL_SIZE: 10 } as Config['settings'];
    fetches = new Fetches({ isEmbedded: false } as Postgres, { settings } as Config);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are so many for one subscription, of one application, and in all', () => {
    const enter = (subscriptionId: string, clientId: string) => fetches.enter({ subscriptionId, clientId });
    const enterTimes = (times: number, clientId: string) =>
      Array.from({ length: times }, (_, nr) => enter(`${clientId} ${nr >> 2}`, clientId));
    const refused = expect.objectContaining({ status: 429, code: 'too-many-fetches' });
    const [leave] = enterTimes(500, 'one');
    expect(() => enter('one 0', 'two')).toThrow(refused);
    expect(() => enter('another', 'one')).toThrow(refused);
    enterTimes(500, 'two');
    expect(() => enter('another', 'three')).toThrow(refused);
    leave!();
    enter('one 0', 'three');
    expect(() => enter('another', 'one')).toThrow(refused);
  });

  it('get no turn where none comes within five seconds, or the process stops', async () => {
    const look = vi.fn<() => Promise<void>>(() => new Promise(() => {}));
    const one = () => fetches.inTurn('one', never, look);
    void one();
    void one();
    const third = one();
    await vi.advanceTimersByTimeAsync(5000);
    expect(await third).toBeUndefined();
    const fourth = one();
    fetches.onModuleDestroy();
    expect(await fourth).toBeUndefined();
    expect(await fetches.inTurn('two', never, look)).toBeUndefined();
    expect(look).toHaveBeenCalledTimes(2);
  });

  it('give their turn to the next one when a look fails', async () => {
    const failing = Array.from({ length: 5 }, () =>
      fetches.inTurn('one', never, () => Promise.reject(new Error('no answer'))),
    );
    expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect(await fetches.inTurn('one', never, async () => 'found')).toBe('found');
  });
});
