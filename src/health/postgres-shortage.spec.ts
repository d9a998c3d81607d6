import { expect, it } from 'vitest';
import { createDatabase } from '../../test/support/database.js';
import { eventually } from '../../test/support/eventually.js';
import { TcpProxy } from '../../test/support/tcp-proxy.js';
import { readSettings } from '../config/settings.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { checkHealth } from './check-health.js';
import { migrationsHaveRun, postgresWorks } from './part-checks.js';

it('a Postgres behind a proxy that closes each connection at once is named as such by every part', async () => {
  const database = await createDatabase();
  const proxy = await TcpProxy.start(database.url);
  const postgres = await Postgres.open(readSettings({ DATABASE_URL: proxy.url }), []);
  try {
    await proxy.cut();
    await proxy.restore();
    proxy.onClientData = (_, server) => void server.destroy();
    const heartbeat = { hasExpired: false } as Heartbeat;
    const error = 'no connection to Postgres: it was closed at once';
    await eventually(async () => {
      const health = await checkHealth(
        [postgresWorks(postgres, heartbeat), migrationsHaveRun(postgres)],
        ['api'],
        30_000,
        () => {},
      );
      expect(health).toMatchObject({
        status: 'unavailable',
        parts: { postgres: { error }, migrations: { error } },
      });
      return true;
    });
  } finally {
    await postgres.close();
    await proxy.cut();
    await database.drop();
  }
});
