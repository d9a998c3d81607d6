import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { PassThrough } from 'node:stream';
import { AlertLoop } from '../src/alerts/alert-loop.service.js';
import type { NoteSender } from '../src/alerts/note-sender.service.js';
import type { AlertRounds } from '../src/alerts/rounds.service.js';
import { Catalogue } from '../src/catalogue/catalogue.service.js';
import type { Config } from '../src/config/config.module.js';
import { OpenEndpoints } from '../src/endpoints/open-endpoints.service.js';
import { RedisOrPostgresIdempotencyStore } from '../src/idempotency/idempotency-store.redis-or-postgres.js';
import type { RedisIdempotencyStore } from '../src/idempotency/idempotency-store.redis.js';
import { systemClock } from '../src/infra/clock.js';
import type { Postgres } from '../src/infra/postgres/postgres.js';
import type { Statement } from '../src/infra/postgres/statement.js';
import { lowestId } from '../src/ledger/partitions.js';
import { LiveListeners } from '../src/live-events/live-listeners.service.js';
import { Heartbeat } from '../src/liveness/heartbeat.service.js';
import { LedgerClock } from '../src/liveness/ledger-clock.service.js';
import type { OperationalEvents } from '../src/operational-events/operational-events.service.js';
import { Arrivals } from '../src/pulling/arrivals.service.js';
import { QueueProgress } from '../src/queue/queue-progress.service.js';
import { SessionWatch } from '../src/sessions/session-watch.service.js';

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
        new LedgerClock(postgres, systemClock),
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
    'pull.arrivals-not-read',
    'pull.arrivals-read-again',
    async (postgres) => {
      const arrivals = new Arrivals(postgres, { now: () => Date.now() } as LedgerClock);
      void arrivals.join(lowestId).wait(3_600_000, new AbortController().signal);
    },
  ],
  [
    'sessions.not-read',
    'sessions.read-again',
    async (postgres) => {
      const watch = new SessionWatch(postgres, { now: () => Date.now() } as LedgerClock);
      watch.add(
        'hash',
        () => true,
        () => {},
      );
    },
  ],
  [
    'alerts.round-failed',
    'alerts.round-works-again',
    async (postgres) => {
      const rounds = { run: () => postgres.transactionAside(() => Promise.resolve()) } as unknown as AlertRounds;
      new AlertLoop(
        postgres,
        rounds,
        { channelNames: [] } as unknown as NoteSender,
        systemClock,
      ).onApplicationBootstrap();
    },
  ],
  [
    'live-events.not-read',
    'live-events.read-again',
    async (postgres) => {
      const listeners = new LiveListeners(postgres, { noteListening: () => {} } as Heartbeat);
      const output = new PassThrough().resume();
      onTestFinished(() => void output.destroy());
      await listeners.join(output, {}, await listeners.prepare('somebody'), undefined);
    },
  ],
];

describe('while Postgres is away', () => {
  let isAway: boolean;
  let refused: number;
  let logged: () => Record<string, unknown>[];
  const query = (statement: Pick<Statement, 'name'>) => {
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
    const transactionAside = (work: (query: unknown) => Promise<unknown>) =>
      query({ name: 'BEGIN' }).then(() => work(query));
    const asked = { query, affected: query, queryAside: query, transactionAside };
    await start({ isEmbedded: false, ...asked } as unknown as Postgres);
    isAway = true;
    // Within the minute after which it would be mentioned again.
    for (let ms = 0; ms < 50_000; ms += 100) await vi.advanceTimersByTimeAsync(100);
    expect(refused).toBeGreaterThan(2);
    expect(logged()).toMatchObject([{ event: failed, failures: 1, error: { message: 'connect ECONNREFUSED' } }]);
    isAway = false;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(logged().map(({ event }) => event)).toEqual([worksAgain, failed]);
  });
});
