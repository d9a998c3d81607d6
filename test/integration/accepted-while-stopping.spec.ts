import { expect, it, vi } from 'vitest';
import { Config } from '../../src/config/config.module.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { Api } from '../support/api.js';
import { queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';

const written = `
  SELECT (SELECT coalesce(sum(accepted), 0)::int FROM activity
      WHERE bucket_seconds = 3600 AND kind = 'channel' AND id = 'late') AS counted,
    (SELECT count(*)::int FROM live_event WHERE event LIKE '%accepted%late%') AS told`;

it('a notification that is accepted while the process stops is counted, and told to those who listen', async () => {
  const api = await Api.start();
  const url = api.app.get(Config).settings.DATABASE_URL;
  await api.post('/kanaal', { naam: 'late', filters: [] });
  const postgres = api.app.get(Postgres);
  await postgres.dataSource.query(`UPDATE live_listener SET expires_at = 'infinity'`);
  await eventually(() => api.app.get(Heartbeat).isListenedTo, 'the process to know that somebody listens');
  // All that it does before its server is closed has ended then.
  const adapter = api.app.getHttpAdapter();
  const close = adapter.close.bind(adapter);
  const statuses: number[] = [];
  vi.spyOn(adapter, 'close').mockImplementation(async () => {
    statuses.push((await api.post('/notificaties', notificatie('late'))).status);
    return close();
  });
  const end = postgres.close.bind(postgres);
  let seen: object[] = [];
  vi.spyOn(postgres, 'close').mockImplementation(async () => {
    await end(); // by then it has written all
    seen = await queryOnce(url, written);
  });
  await api.close();
  expect(statuses).toEqual([201]);
  expect(seen).toEqual([{ counted: 1, told: 1 }]);
});
