import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { PassThrough } from 'node:stream';
import { Catalogue } from '../src/catalogue/catalogue.service.js';
import type { Config } from '../src/config/config.module.js';
import { OpenEndpoints } from '../src/endpoints/open-endpoints.service.js';
import { RedisOrPostgresIdempotencyStore } from '../src/idempotency/idempotency-store.redis-or-postgres.js';
import type { RedisIdempotencyStore } from '../src/idempotency/idempotency-store.redis.js';
import { systemClock } from '../src/infra/clock.js';
import type { Postgres } from '../src/infra/postgres/postgres.js';
import type { Statement } from '../src/infra/postgres/statement.js';
import { LiveListeners } from '../src/live-events/live-listeners.service.js';
import { Heartbeat } from '../src/liveness/heartbeat.service.js';
import type { OperationalEvents } from '../src/operational-events/operational-events.service.js';
import { QueueProgress } from '../src/queue/queue-progress.service.js';

const answers: Record<string, object[]> = {
  'catalogue-version': [{ version: '0' }],
  heartbeat: [{ now_ms: '0', workers: 1 }],
  'look-at-redis-outage': [{ store: 'redis', is_open: true, has_keys_in_postgres: false }],
  'live-event-ends': [{ first: null, last: '0' }],
};

/** All that runs every few seconds, by the events that say that it fails and that it works again. */
const repeated: [failed: string, worksAgain: string, start: (postgres: Postgres) => Promise<unknown>][] = [
  [
    'catalogue.refresh-failed',
    'catalogue.refresh-works-again',
    (postgres) => new Catalogue(postgres).onApplicationBootstrap(),
  ],
  [
    'endpoints.refresh-failed',
    'endpoints.refresh-works-again',
    (postgres) => new OpenEndpoints(postgres, {} as OperationalEvents).onApplicationBootstrap(),
  ],
  [
    'heartbeat.failed',
    'heartbeat.works-again',
    (postgres) =>
      new Heartbeat(
        postgres,
        { settings: { ROLES: ['api'] } } as unknown as Config,
        systemClock,
      ).onApplicationBootstrap(),
  ],
  [
    'queue.progress-not-reported',
    'queue.progress-reported-again',
    async (postgres) => {
      const progress = new QueueProgress(postgres, { processId: 'this' } as unknown as Heartbeat);
      progress.take('due', 1);
      progress.onApplicationBootstrap();
    },
  ],
  [
    'idempotency.store-not-seen',
    'idempotency.store-seen-again',
    (postgres) => {
      const redis = { announce: () => Promise.resolve() } as RedisIdempotencyStore;
      return new RedisOrPostgresIdempotencyStore(redis, postgres).announce();
    },
  ],
  [
    'live-events.not-read',
    'live-events.read-again',
    async (postgres) => {
      const listeners = new LiveListeners(postgres, { noteListening: () => {} } as Heartbeat);
      const output = new PassThrough().resume();
      onTestFinished(() => void output.destroy());
      await listeners.join(output, {}, await listeners.prepare(), undefined);
    },
  ],
];

describe('while Postgres is away', () => {
  let isAway: boolean;
  let refused: number;
  let logged: () => Record<string, unknown>[];
  const query = (statement: Statement) => {
    if (!isAway) return Promise.resolve(answers[statement.name] ?? []);
    refused++;
    return Promise.reject(new Error('connect ECONNREFUSED'));
  };

  beforeEach(() => {
    [isAway, refused] = [false, 0];
    vi.useFakeTimers();
    vi.spyOn(Logger.prototype, 'debug').mockImplementation(() => {});
    const spies = (['log', 'warn', 'error'] as const).map((level) =>
      vi.spyOn(Logger.prototype, level).mockImplementation(() => {}),
    );
    logged = () => spies.flatMap(({ mock }) => mock.calls.map(([line]) => line as Record<string, unknown>));
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it.each(repeated)('%s is one line in many tries, and %s is another', async (failed, worksAgain, start) => {
    await start({ isEmbedded: false, query, affected: query } as unknown as Postgres);
    isAway = true;
    while (refused < 20) await vi.advanceTimersByTimeAsync(100);
    expect(logged()).toMatchObject([{ event: failed, failures: 1, error: { message: 'connect ECONNREFUSED' } }]);
    isAway = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(logged().map(({ event }) => event)).toEqual([worksAgain, failed]);
  });
});
