import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChannelDirectory } from '../../src/channels/channel-directory.service.js';
import { ConfigurationService } from '../../src/configuration-file/configuration.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { createPartition, partitionsBetween } from '../../src/ledger/partitions.js';
import { BodyRetention } from '../../src/retention/body-retention.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { createDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { insertNotifications } from '../support/insert-deliveries.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { protectedReceiver, Receiver } from '../support/receiver.js';

const auth = 'Bearer letmein';

describe('a channel that an operator removes', () => {
  let admin: AdminApi;
  let receiver: Receiver;
  let naam: string;
  let url: string;
  let path: string;

  beforeAll(async () => {
    [admin, receiver] = await Promise.all([AdminApi.start(), Receiver.start()]);
    receiver.always(protectedReceiver);
  });
  beforeEach(async () => {
    naam = randomUUID();
    url = (await admin.api.post('/kanaal', { naam, filters: ['kind'] })).json.url;
    path = `/admin/v1/channels/${lastPart(url)}`;
  });
  afterAll(() => Promise.all([admin.close(), receiver.stop()]));

  const input = () => ({ callbackUrl: receiver.url, auth, channels: [{ channel: naam, filters: {} }] });
  const subscribe = () =>
    admin.api.post('/abonnement', { callbackUrl: receiver.url, auth, kanalen: [{ naam, filters: { kind: 'a' } }] });
  const notification = () => notificatie(naam, { kenmerken: { kind: 'a' } });
  const publish = () => admin.api.post('/notificaties', notification());

  it('stays as long as a subscription names it, also one that is disabled', async () => {
    const { json } = await subscribe();
    const inUse = { status: 409, json: { code: 'channel-in-use', detail: expect.stringMatching(/^A subscription /) } };
    expect(await admin.delete(path)).toMatchObject(inUse);
    await admin.api.app.get(SubscriptionsService).disable(lastPart(json.url));
    expect(await admin.delete(path)).toMatchObject(inUse);
    expect((await admin.get(path)).json).toMatchObject({ name: naam, filters: ['kind'] });
    await admin.api.delete(json.url);
    expect((await admin.delete(path)).status).toBe(204);
  });

  it('is gone in both APIs and at every process, and nothing is published on it or subscribed to', async () => {
    const sibling = new Catalogue(admin.api.app.get(Postgres));
    const known = new ChannelDirectory(sibling, admin.api.app.get(Postgres));
    await sibling.refresh();
    expect(known.find(naam)).toMatchObject({ name: naam });
    expect((await admin.delete(path)).status).toBe(204);
    await sibling.refresh();
    expect([known.find(naam), known.get(lastPart(path))]).toEqual([undefined, undefined]);
    expect((await admin.get(path)).status).toBe(404);
    expect((await admin.patch(path, { filters: [] })).status).toBe(404);
    expect((await admin.delete(path)).status).toBe(404);
    expect((await admin.api.get(url)).status).toBe(404);
    expect((await admin.api.get(`/kanaal?naam=${naam}`)).text).toBe('[]');
    expect(await publish()).toMatchObject({ status: 400, json: { invalidParams: [{ code: 'message_kanaal' }] } });
    expect(await subscribe()).toMatchObject({ status: 400, json: { invalidParams: [{ code: 'kanaal_naam' }] } });
  });

  it.each([
    ['made', 201, (name: string) => admin.post('/admin/v1/channels', { name, filters: ['other'] })],
    ['changed', 200, () => admin.patch(path, { filters: ['other'] })],
  ] as const)(
    'is answered as it was %s, also where it was removed before that was read',
    async (_done, status, act) => {
      const directory = admin.api.app.get(ChannelDirectory);
      const refresh = directory.refresh.bind(directory);
      const inBetween = vi.spyOn(directory, 'refresh').mockImplementationOnce(async (known) => {
        await admin.api.app.get(Postgres).dataSource.query(
          `WITH change AS (UPDATE catalogue SET version = version + 1 RETURNING version)
         UPDATE channel SET deleted_at = now(), version = (SELECT version FROM change) WHERE version > $1`,
          [known],
        );
        await refresh(known);
      });
      const answered = await act(randomUUID());
      inBetween.mockRestore();
      expect([answered.status, answered.json.filters]).toEqual([status, ['other']]);
      expect((await admin.get(`/admin/v1/channels/${answered.json.id}`)).status).toBe(404);
    },
  );

  it('is refused by a process that has not heard of it, but for what was published before under its key', async () => {
    const database = await createDatabase();
    const settings = { DATABASE_URL: database.url };
    const [here, other] = await Promise.all([AdminApi.start(settings), AdminApi.start(settings)]);
    const created = await here.api.post('/kanaal', { naam, filters: ['kind'] });
    await here.api.post('/kanaal', { naam: 'another' });
    await other.api.app.get(Catalogue).refresh();
    other.api.app.get(Catalogue).onModuleDestroy(); // looks no more by itself
    const kept = { 'idempotency-key': randomUUID() };
    const first = await other.api.post('/notificaties', notification(), { headers: kept });
    expect(first.status).toBe(201);
    expect((await here.delete(`/admin/v1/channels/${lastPart(created.json.url)}`)).status).toBe(204);
    const answers = await Promise.all([
      other.api.post('/notificaties', notification()),
      other.api.post('/notificaties', { ...notification(), kanaal: 'another' }),
      other.api.post('/notificaties', notification(), { headers: kept }),
      other.api.post('/notificaties', notification(), { headers: { 'idempotency-key': randomUUID() } }),
      other.api.put(`/notificaties/${randomUUID()}`, notification()),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([400, 201, 201, 400, 400]);
    expect(answers[0]!.json.invalidParams).toMatchObject([{ name: 'kanaal', code: 'message_kanaal' }]);
    expect(answers[2]!.headers.get('notification-id')).toBe(first.headers.get('notification-id'));
    await Promise.all([here.close(), other.close()]);
    await database.drop();
  });

  it('leaves what was published on it: that is delivered, found and shown', async () => {
    const { json: subscription } = await subscribe();
    const id = (await publish()).headers.get('notification-id')!;
    const delivered = () =>
      admin.get(`/admin/v1/deliveries?notification=${id}`).then(({ json }) => json.deliveries[0]?.state);
    await eventually(async () => (await delivered()) === 'delivered', 'the delivery');
    await admin.api.delete(subscription.url);
    expect((await admin.delete(path)).status).toBe(204);
    expect((await admin.get(`/admin/v1/notifications?channel=${naam}`)).json.notifications).toMatchObject([{ id }]);
    expect((await admin.get(`/admin/v1/notifications/${id}`)).json).toMatchObject({ channel: naam });
    expect(await delivered()).toBe('delivered');
  });

  it('is a new one when it is made again, under the address that it had', async () => {
    await admin.patch(path, { maxAgeSeconds: 60, deduplication: { fields: ['actie'] } });
    await admin.delete(path);
    const again = await admin.api.post('/kanaal', { naam, filters: ['other'] });
    expect(again).toMatchObject({ status: 201, json: { url, filters: ['other'], documentatieLink: '' } });
    const rules = { deduplication: null, maxAgeSeconds: null, bodyRetentionDays: null };
    expect((await admin.get(path)).json).toMatchObject({ filters: ['other'], ...rules });
    await admin.delete(path);
    await admin.api.app.get(ConfigurationService).apply({ channels: [{ name: naam, maxAgeSeconds: 5 }] }, false);
    expect((await admin.get(path)).json).toMatchObject({ filters: [], ...rules, maxAgeSeconds: 5 });
  });

  it('keeps bodies for as long as it said, whoever makes it again, unless an operator says otherwise', async () => {
    const postgres = admin.api.app.get(Postgres);
    const at = Date.now() - 9 * 86_400_000;
    for (const partition of partitionsBetween(at, at)) await postgres.dataSource.query(createPartition(partition));
    const old = uuidv7({ msecs: at });
    await insertNotifications((text, values) => postgres.dataSource.query(text, values), [old], { channel: naam });
    const shownDays = async () => {
      const { channels } = (await admin.get('/admin/v1/retention')).json as unknown as { channels: { name: string }[] };
      return channels.filter(({ name }) => name === naam);
    };
    const rule = { name: naam, bodyRetentionDays: 3 };
    await admin.patch(path, { bodyRetentionDays: 3 });
    expect(await shownDays()).toEqual([{ ...rule, isRemoved: false }]);
    await admin.delete(path);
    expect(await shownDays()).toEqual([{ ...rule, isRemoved: true }]);

    await admin.api.post('/kanaal', { naam, filters: ['other'] });
    expect((await admin.get(path)).json).toMatchObject({ filters: ['other'], bodyRetentionDays: 3 });
    await admin.api.app.get(BodyRetention).eraseOld(new AbortController().signal);
    const bodies = await postgres.dataSource.query('SELECT body FROM notification WHERE id = $1', [old]);
    expect(bodies).toEqual([{ body: null }]);

    await admin.delete(path);
    const configuration = admin.api.app.get(ConfigurationService);
    const { changes } = await configuration.apply({ channels: [{ name: naam }] }, false);
    expect(changes).toMatchObject([{ fields: [{ name: 'bodyRetentionDays', before: null, after: 3 }] }]);
    expect((await admin.get(path)).json).toMatchObject({ bodyRetentionDays: 3 });
    await admin.delete(path);
    await configuration.apply({ channels: [{ name: naam, bodyRetentionDays: null }] }, false);
    expect((await admin.get(path)).json).toMatchObject({ bodyRetentionDays: null });
  });

  it('is not removed by somebody who has seen another state of it', async () => {
    const headers = { 'if-match': (await admin.get(path)).headers.get('etag')! };
    await admin.patch(path, { maxAgeSeconds: 60 });
    expect((await admin.delete(path, { headers })).status).toBe(412);
    const again = { 'if-match': (await admin.get(path)).headers.get('etag')! };
    expect((await admin.delete(path, { headers: again })).status).toBe(204);
  });

  it('gets no subscription whose callback was being called meanwhile', async () => {
    const service = admin.api.app.get(SubscriptionsService);
    const other = await service.create('other', { ...input(), channels: [] });
    await admin.delete(path);
    const removed = { status: 409, code: 'channel-removed' };
    await expect(service.create('other', input())).rejects.toMatchObject(removed);
    await expect(service.update(other.subscription.id, input())).rejects.toMatchObject(removed);
    expect((await service.update(other.subscription.id, { auth: 'Bearer other' })).channels).toEqual([]);
  });
});
