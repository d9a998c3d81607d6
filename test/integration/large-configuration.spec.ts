import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomBytes, randomUUID } from 'node:crypto';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';
import { ConfigurationService } from '../../src/configuration-file/configuration.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { secretWatch } from '../support/secret-watch.js';

/** Without the times of changes, of which each has its own. */
const timeless = (entries: unknown): unknown =>
  JSON.parse(
    JSON.stringify(entries, (_, value: unknown) => (/^\d{4}-\d\d-\d\dT/.test(String(value)) ? 'a time' : value)),
  );

describe('a configuration that changes hundreds of subscriptions', () => {
  let admin: AdminApi;
  /** So many that they are not all written together. */
  const count = 300;
  const channel = `channel-${randomUUID()}`;
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const created = (id: string) => ({
    id,
    callbackUrl: 'https://receiver.example.org/hook',
    channels: [{ channel }],
    authorization: { kind: 'verbatim', auth: `Bearer one of ${channel}` },
    isPaused: true,
  });
  const changed = (id: string) => ({
    id,
    callbackUrl: 'https://receiver.example.org/other',
    channels: [{ channel, filters: { b: '1', a: '"{é}, \\\\' } }],
    authorization: { kind: 'verbatim', auth: `Bearer another of ${channel}` },
    isPaused: false,
    ratePerSecond: 2.5,
    maxConcurrency: 3,
    ordering: 'per-object',
    alertEmail: 'team@example.org',
    retryPolicy: { maxRetries: 3 },
  });
  const ids = Array.from({ length: count }, () => randomUUID() as string);
  const [alone, withKey] = [randomUUID() as string, ids[100]!];

  const configured = (subscriptions: object[]) => ({
    channels: [{ name: channel, filters: ['a', 'b'] }],
    subscriptions,
  });
  const appliedNow = (configuration: object) => admin.api.app.get(ConfigurationService).apply(configuration, false);

  const trail = async (id: string) => {
    const { json } = await admin.get(`/admin/v1/audit?subject=${encodeURIComponent(`subscription/${id}`)}`);
    const entries = (json as unknown as { entries: Record<string, unknown>[] }).entries.reverse();
    return entries.map(({ action, before, after, changedSecrets }) => ({ action, before, after, changedSecrets }));
  };

  const rowOf = async (id: string) => {
    const [row] = await admin.api.app.get(Postgres).dataSource.query<{ row: Record<string, unknown> }[]>(
      `SELECT to_json(s) AS row FROM (
         SELECT owner_client_id, callback_url, channels::text, delivery_guarantee, disabled_at, paused_at, timeout_seconds,
           max_concurrency, rate_per_second, ordering, alert_email, deleted_at, policy,
           EXISTS (SELECT FROM held_subscription h WHERE h.subscription_id = id AND resumed_at IS NOT NULL) AS is_resumed
         FROM subscription LEFT JOIN subscription_retry_policy ON subscription_id = id WHERE id = $1
       ) AS s`,
      [id],
    );
    return row!.row;
  };

  beforeAll(async () => {
    admin = await AdminApi.start({ ROLES: 'api' });
    secretWatch.know(secret, `one of ${channel}`, `another of ${channel}`);
    await appliedNow(configured([created(alone)]));
    await appliedNow(configured([changed(alone)]));
  });

  afterAll(() => admin.close());

  it('makes each of them what it would be by itself, with the same entries in the audit log, in the same order', async () => {
    const reported = vi.spyOn(admin.api.app.get(OperationalEvents), 'report');
    await appliedNow(configured(ids.map(created)));
    const change = ids.map((id) => ({ ...changed(id), ...(id === withKey && { signingKeys: [{ secret }] }) }));
    expect((await appliedNow(configured(change))).changes).toHaveLength(count);
    const events = reported.mock.calls.map(([{ event }]) => event).filter((event) => event.startsWith('subscription.'));
    reported.mockRestore();
    expect(events).toEqual([
      ...Array<string>(count).fill('subscription.paused'),
      ...Array<string>(count).fill('subscription.resumed'),
    ]);

    const [row, entries] = [await rowOf(alone), await trail(alone)];
    expect(entries.map(({ action }) => action)).toEqual([
      'subscription.created',
      'subscription.paused',
      'subscription.changed',
      'subscription.changed',
      'subscription.credentials-changed',
      'subscription.resumed',
      'subscription.retry-policy-changed',
    ]);
    expect(row).toMatchObject({ policy: { maxRetries: 3 }, is_resumed: true, paused_at: null });
    for (const id of [ids[0]!, ids[99]!, ids[101]!, ids[249]!, ids[250]!, ids.at(-1)!]) {
      expect([id, await rowOf(id)]).toEqual([id, row]);
      expect(timeless(await trail(id))).toEqual(timeless(entries));
    }
    const last = (await trail(withKey)).at(-1)!;
    expect(last).toMatchObject({ action: 'subscription.signing-key-created' });
    expect((await trail(withKey)).slice(0, -1).map(({ action }) => action)).toEqual(
      entries.map(({ action }) => action),
    );
    expect((await admin.api.app.get(SubscriptionsService).get(ids[7]!)).auth).toBe(`Bearer another of ${channel}`);
    expect((await appliedNow(configured(ids.map(changed)))).changes).toEqual([]);
  });

  /** How many statements insert into each table while the configuration is applied. */
  async function insertsWhile(configuration: object): Promise<{ subscription: number; audit_entry: number }> {
    const query = vi.spyOn(PostgresQueryRunner.prototype, 'query');
    await appliedNow(configuration);
    const texts = query.mock.calls.map(([text]) => text);
    query.mockRestore();
    const inserts = (table: string) =>
      texts.filter((text) => new RegExp(`INSERT INTO "?${table}"?\\b`).test(text)).length;
    return { subscription: inserts('subscription'), audit_entry: inserts('audit_entry') };
  }

  const newIds = (length: number) => Array.from({ length }, () => randomUUID() as string);

  it('writes many of them with one statement', async () => {
    const inserted = await insertsWhile(configured(newIds(count).map(created)));
    expect(inserted).toEqual({ subscription: 2, audit_entry: 2 });
  });

  it('writes fewer large ones with one statement', async () => {
    const channels = Array.from({ length: 500 }, (_, nr) => ({ channel, filters: { a: `${nr}`.padEnd(1000, 'x') } }));
    const { subscription: statements } = await insertsWhile(
      configured(newIds(20).map((id) => ({ ...created(id), channels }))),
    );
    expect(statements).toBeGreaterThan(1);
    expect(statements).toBeLessThan(20);
  });
});
