import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../infra/clock.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { IdempotencyStore } from './idempotency-store.js';
import { Idempotency } from './idempotency.service.js';

describe('a process', () => {
  const store = () => ({
    announce: vi.fn<() => Promise<void>>(),
    withdraw: vi.fn<() => Promise<void>>(),
    forget: vi.fn<(process: string) => Promise<void>>(),
  });
  let noteEnd: (process: string) => Promise<void>;
  const heartbeat = { beforeNotedEnd: (forget: typeof noteEnd) => (noteEnd = forget) } as unknown as Heartbeat;
  const idempotencyOn = (fake: ReturnType<typeof store>) =>
    new Idempotency(fake as unknown as IdempotencyStore, heartbeat, systemClock);

  it('counts as alive in the store of its locks from its start to its end', async () => {
    const fake = store();
    const idempotency = idempotencyOn(fake);
    idempotency.operation({ name: 'test', lockTtlMs: 1000, mayTakeOver: true });
    await idempotency.onApplicationBootstrap();
    expect([fake.announce, fake.withdraw].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
    await idempotency.onApplicationShutdown();
    expect([fake.announce, fake.withdraw].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  });

  it('has its store forget another one that has ended', async () => {
    const fake = store();
    const idempotency = idempotencyOn(fake);
    idempotency.operation({ name: 'test', lockTtlMs: 1000, mayTakeOver: true });
    await idempotency.onApplicationBootstrap();
    await noteEnd('another');
    expect(fake.forget.mock.calls).toEqual([['another']]);
  });

  it('that locks nothing has no say in which store that is', async () => {
    const fake = store();
    const idempotency = idempotencyOn(fake);
    await idempotency.onApplicationBootstrap();
    await idempotency.onApplicationShutdown();
    expect([fake.announce, fake.withdraw].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  });
});
