import { NestFactory } from '@nestjs/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSettings } from '../config/settings.js';
import type { Idempotency } from '../idempotency/idempotency.service.js';
import { systemClock } from '../infra/clock.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { eventually } from '../../test/support/eventually.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { LateLocks } from './late-locks.service.js';

describe('late locks', () => {
  let now: number;
  let isSteady: boolean;
  /** The calls to the store, in their order. */
  let steps: string[];
  let answer: () => Promise<{ kind: string; lock?: object }>;
  let heldUntil: number;
  let locks: LateLocks;

  const lock = {
    seal: async () => void steps.push('seal'),
    release: async () => void steps.push('release'),
    get isHeld() {
      return now < heldUntil;
    },
  };
  const acquired = () => Promise.resolve({ kind: 'acquired', lock });

  beforeEach(() => {
    [now, isSteady, steps, answer, heldUntil] = [0, true, [], acquired, Infinity];
    const operation = () => ({
      acquire: () => {
        steps.push('acquire');
        return answer();
      },
    });
    locks = new LateLocks(
      { operation } as unknown as Idempotency,
      {
        get isSteady() {
          return isSteady;
        },
      } as unknown as Heartbeat,
      { now: () => now, pause: systemClock.pause },
      { now: () => now } as LedgerClock,
      { settings: readSettings({}) },
    );
  });
  afterEach(() => locks.beforeApplicationShutdown());

  const begin = () => locks.begin(newDelivery({}), 0);
  async function sweepAt(ms: number): Promise<void> {
    now = ms;
    await locks.sweep();
  }

  it('are asked for after 300 milliseconds, once', async () => {
    begin();
    await sweepAt(299);
    expect(steps).toEqual([]);
    await sweepAt(300);
    await sweepAt(500);
    expect(steps).toEqual(['acquire']);
  });

  it('are not asked for where the delivery is over before', async () => {
    const unlocked = begin();
    expect(unlocked.seal(['delivered'], 1000)).toBeUndefined();
    expect(unlocked.end()).toBeUndefined();
    await sweepAt(1000);
    expect(steps).toEqual([]);
  });

  it('are asked for until the worker has finished, which may take its calls seconds while the process stops', async () => {
    const worker = {
      onModuleDestroy: async () => {
        begin();
        now = 300;
        await eventually(() => steps.length > 0, 'its lock to be asked for');
      },
    };
    const providers = [
      { provide: LateLocks, useValue: locks },
      { provide: 'worker', useValue: worker },
    ];
    const process = await NestFactory.createApplicationContext(
      { module: class Delivering {}, providers },
      { logger: false },
    );
    await process.close();
    expect(steps).toEqual(['acquire']);
  });

  it('are asked for again where the store does not answer', async () => {
    begin();
    answer = () => Promise.reject(new Error('away'));
    await sweepAt(300);
    answer = acquired;
    await sweepAt(400);
    await sweepAt(500);
    expect(steps).toEqual(['acquire', 'acquire']);
  });

  it('are released where the store gave one without answering, although the delivery is over by then', async () => {
    const unlocked = begin();
    answer = () => Promise.reject(new Error('away'));
    await sweepAt(300);
    await unlocked.end();
    answer = acquired;
    await sweepAt(400);
    await sweepAt(500);
    expect(steps).toEqual(['acquire', 'acquire', 'release']);
  });

  it('are released where they come when the delivery is over, or sealed with its outcome', async () => {
    const [failed, delivered] = [begin(), begin()];
    const given: (() => void)[] = [];
    answer = () => new Promise((resolve) => given.push(() => resolve({ kind: 'acquired', lock })));
    const sweeping = sweepAt(300);
    await failed.end();
    await delivered.seal(['delivered'], 1000);
    for (const give of given) give();
    await sweeping;
    expect(steps).toEqual(['acquire', 'acquire', 'release', 'seal']);
  });

  it.each([
    ['may wait', 0, 9999, true],
    ['may not where the lease that the delivery was accepted with is about to end', 0, 10_000, false],
    ['may not where that has ended, as after a standstill', 0, 60_000, false],
    ['may wait, by the age of the delivery', 55_000, 60_000, true],
  ])('%s', (_, queuedAt, at, expected) => {
    now = at;
    expect(locks.mayWait(queuedAt)).toBe(expected);
    isSteady = false;
    expect(locks.mayWait(queuedAt)).toBe(false);
  });

  it('leave others no time to send what is under its lease, until that is about to end', async () => {
    const unlocked = begin();
    now = 9999;
    expect(unlocked.isHeld).toBe(true);
    now = 10_000;
    expect(unlocked.isHeld).toBe(false);
  });

  it('take the place of the lease, and may be lost like any lock', async () => {
    const unlocked = begin();
    await sweepAt(300);
    [now, heldUntil] = [10_000, 20_000];
    expect(unlocked.isHeld).toBe(true);
    now = 20_000;
    expect(unlocked.isHeld).toBe(false);
  });

  it('are left to another message that was faster', async () => {
    const unlocked = begin();
    answer = () => Promise.resolve({ kind: 'locked', holder: 'another' });
    await sweepAt(300);
    await unlocked.seal(['delivered'], 1000);
    await unlocked.end();
    await sweepAt(400);
    expect(steps).toEqual(['acquire']);
  });
});
