import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareTarget } from '../../scripts/fuzz/prepare.mjs';
import { fuzzServer } from '../../scripts/fuzz/server-side.mjs';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Api, superuser } from '../support/api.js';

/** `npm run fuzz` sends more, with another seed. */
const [requests, seed] = [3000, 20_261_122];

describe('whatever is sent to the server', () => {
  let api: Api;

  beforeAll(async () => {
    api = await Api.start({ ROLES: 'api', TEST_CALLBACK_AUTH: 'false', CALLBACK_NETWORKS: 'any' });
  });
  afterAll(() => api.close());

  it('is answered as documented, and writes nothing where it is refused', async () => {
    const sql = (text: string, values: unknown[] = []): Promise<unknown[]> =>
      api.app.get(Postgres).dataSource.query(text, values);
    const target = await prepareTarget(Number(new URL(api.origin).port), superuser, sql);
    const { findings, answers } = await fuzzServer(target, { requests, seed });
    await target.stop();
    expect(findings.slice(0, 5)).toEqual([]);
    expect(findings).toHaveLength(0);

    // Most operations were also carried out: a run in which all is refused would show little.
    const statuses = [...answers.values()].flatMap((byStatus) => [...byStatus]);
    const sum = (of: (status: number) => boolean) =>
      statuses.filter(([status]) => of(status)).reduce((total, [, count]) => total + count, 0);
    expect(sum(() => true)).toBeGreaterThan(requests * 0.9);
    expect(sum((status) => status < 300)).toBeGreaterThan(requests / 10);
    expect(sum((status) => status === 400)).toBeGreaterThan(requests / 10);
  });
});
