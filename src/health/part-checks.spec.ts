import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { readSettings } from '../config/settings.js';
import { createDatabase } from '../../test/support/database.js';
import { checkHealth } from './check-health.js';
import { postgresWorks, redisIsInUse } from './part-checks.js';

describe('Postgres', () => {
  it('is down when something did not fit on its disk, although it answers, and up again half a minute after the last time', async () => {
    const database = await createDatabase();
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    const { check } = postgresWorks(postgres, { hasExpired: false } as Heartbeat);
    await check();
    const filling = statement('filling', `DO $$ BEGIN RAISE SQLSTATE '53100'; END $$`);
    await expect(postgres.query(filling)).rejects.toMatchObject({ code: '53100' });
    await expect(check()).rejects.toThrow('its disk is full');
    postgres.diskFullAt -= 30_000;
    await check();
    await postgres.close();
    await database.drop();
  });
});

describe('Redis', () => {
  it('that says nothing is named before a probe that waits for one second gives up, and stops no process', async () => {
    const silent = { ping: () => new Promise(() => {}) } as unknown as Redis;
    const checks = [redisIsInUse(silent, {} as Postgres)];
    expect(await checkHealth(checks, ['api'], 1000, () => {})).toEqual({
      status: 'degraded',
      parts: { redis: { status: 'down', error: 'no answer within 0.5 s' } },
      down: ['redis'],
    });
  });
});
