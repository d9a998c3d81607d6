import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
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

  it('are so many for one subscription, of one application, and in all, until they are answered', async () => {
    const answers: (() => void)[] = [];
    const fetch = (subscriptionId: string, clientId: string) =>
      fetches.during({ subscriptionId, clientId }, () => new Promise<void>((resolve) => answers.push(resolve)));
    const fetchTimes = (times: number, clientId: string) =>
      Array.from({ length: times }, (_, nr) => fetch(`${nr >> 2}`, clientId));
    const refused = { status: 429, code: 'too-many-fetches', extra: { headers: { 'retry-after': '5' } } };
    const few = fetchTimes(4, 'one');
    await expect(fetch('0', 'one')).rejects.toMatchObject(refused);
    const many = fetchTimes(500, 'two');
    await expect(fetch('another', 'two')).rejects.toMatchObject(refused);
    const rest = fetchTimes(496, 'three');
    await expect(fetch('another', 'four')).rejects.toMatchObject(refused);
    for (const end of answers) end();
    await Promise.all([...few, ...many, ...rest]);
    const next = fetch('0', 'one');
    answers.at(-1)!();
    await next;
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

  it('have so many bytes to read of one application, and of all, until they are read', () => {
    const connections: EventEmitter[] = [];
    const lend = (clientId: string, megabytes: number, destroyed = false) => {
      const connection = Object.assign(new EventEmitter(), { destroyed });
      fetches.lend(clientId, { length: megabytes * 1024 * 1024 } as Buffer, connection as unknown as ServerResponse);
      connections.push(connection);
    };
    const isRefused = (clientId: string, megabytes: number) =>
      expect(() => lend(clientId, megabytes)).toThrow('have not been read yet');
    lend('one', 60);
    isRefused('one', 5);
    lend('one', 4);
    // Their callers are gone.
    for (const clientId of ['two', 'three', 'four']) lend(clientId, 64, true);
    for (const clientId of ['two', 'three', 'four']) lend(clientId, 63);
    lend('five', 3);
    isRefused('six', 1);
    connections[0]!.emit('close');
    lend('six', 60);
    isRefused('one', 1);
    for (const connection of connections) connection.emit('close');
    // One page is given, whatever its size.
    lend('one', 300);
    isRefused('two', 1);
  });

  it('give their turn to the next one when a look fails', async () => {
    const failing = Array.from({ length: 5 }, () =>
      fetches.inTurn('one', never, () => Promise.reject(new Error('no answer'))),
    );
    expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect(await fetches.inTurn('one', never, async () => 'found')).toBe('found');
  });
});
