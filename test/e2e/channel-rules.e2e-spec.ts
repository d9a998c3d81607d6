import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi } from '../support/admin-api.js';
import type { ApiAnswer } from '../support/api.js';
import { createDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { answer, protectedReceiver, Receiver } from '../support/receiver.js';

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([AdminApi.start({ DISPATCH_INTERVAL_MS: '100' }), Receiver.start()]);
});

afterAll(() => Promise.all([admin.close(), receiver.stop()]));

interface TestChannel {
  naam: string;
  path: string;
}

/** With a subscription, and with these rules. */
async function newChannel(rules?: object, filters: string[] = []): Promise<TestChannel> {
  const naam = randomUUID();
  const { json } = await admin.api.post('/kanaal', { naam, filters });
  await admin.api.post('/abonnement', { callbackUrl: receiver.url, auth: 'Bearer x', kanalen: [{ naam }] });
  const path = `/admin/v1/channels/${lastPart(json.url)}`;
  const { status } = rules ? await admin.patch(path, rules) : { status: 200 };
  expect(status).toBe(200);
  return { naam, path };
}

const notification = ({ naam }: TestChannel, more: object = {}) => notificatie(naam, more);

const publish = (channel: TestChannel, more: object = {}, headers: Record<string, string> = {}, token?: string) =>
  admin.api.post('/notificaties', notification(channel, more), { headers, token });
const idOf = ({ headers }: ApiAnswer) => headers.get('notification-id')!;
const duplicateOf = ({ headers }: ApiAnswer) => headers.get('duplicate-of');
const receivedOf = (id: string) => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);
const ofChannel = ({ naam }: TestChannel) => receiver.notifications.filter(({ text }) => text.includes(naam));
const deliveriesOf = async (id: string) => (await admin.get(`/admin/v1/deliveries?notification=${id}`)).json.deliveries;
const becomes = (id: string, state: string) =>
  eventually(async () => (await deliveriesOf(id))[0]?.state === state, `${id} to be ${state}`);

/** @returns the live events that it was told so far; the stream ends with the server */
async function listen(query: string): Promise<() => Record<string, unknown>[]> {
  const headers = { authorization: `Bearer ${admin.api.superuserToken}` };
  const { status, body } = await fetch(`${admin.api.origin}/admin/v1/events?${query}`, { headers });
  expect(status).toBe(200);
  let text = '';
  const reading = async () => {
    for await (const piece of body!.pipeThrough(new TextDecoderStream())) text += piece;
  };
  void reading().catch(() => undefined);
  return () => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Record<string, unknown>);
}

async function counted(name: string, labels = ''): Promise<number> {
  const { text } = await admin.api.get(`${admin.api.origin}/metrics`, { token: null });
  const line = text.split('\n').find((candidate) => candidate.startsWith(name + labels));
  return line === undefined ? 0 : Number(line.split(' ').at(-1));
}

describe('the rules of a channel', () => {
  it('are answered as they are where another process has made the same change a moment before', async () => {
    const { path } = await newChannel();
    const asked: ReturnType<AdminApi['patch']>[] = [];
    await admin.api.app.get(Postgres).upkeep.transaction(async (manager) => {
      await manager.query('UPDATE catalogue SET version = version + 1');
      asked.push(admin.patch(path, { maxAgeSeconds: 60 }));
      // pg_stat_activity would not do: a transaction that looks again sees no connection that was opened since.
      const waiting = 'SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid';
      await eventually(async () => (await manager.query<object[]>(waiting)).length > 0, 'the change to wait');
      const change = 'UPDATE channel SET max_age = 60, version = catalogue.version FROM catalogue WHERE id = $1';
      await manager.query(change, [lastPart(path)]);
    });
    expect(await Promise.all(asked)).toMatchObject([{ status: 200, json: { maxAgeSeconds: 60 } }]);
  });

  it('count in every process from when they are set, also in one that has not read them yet', async () => {
    const database = await createDatabase();
    const [here, other] = await Promise.all([
      AdminApi.start({ DATABASE_URL: database.url }),
      AdminApi.start({ DATABASE_URL: database.url }),
    ]);
    const naam = randomUUID();
    const { json } = await here.api.post('/kanaal', { naam });
    await here.api.post('/abonnement', { callbackUrl: receiver.url, auth: 'Bearer x', kanalen: [{ naam }] });
    await other.api.app.get(Catalogue).refresh();
    other.api.app.get(Catalogue).onModuleDestroy(); // looks no more by itself
    const rules = { deduplication: { fields: ['resourceUrl'], withinSeconds: 60 }, maxAgeSeconds: 3600 };
    const path = `/admin/v1/channels/${lastPart(json.url)}`;
    expect((await here.patch(path, rules)).status).toBe(200);
    const body = notification({ naam, path });
    const young = { ...body, aanmaakdatum: new Date().toISOString() };
    const [old, first, second] = [
      await other.api.post('/notificaties', body),
      await other.api.post('/notificaties', young),
      await here.api.post('/notificaties', young),
    ];
    expect([old, first, second].map(duplicateOf)).toEqual([null, null, idOf(first)]);
    const { deliveries } = (await here.get(`/admin/v1/deliveries?notification=${idOf(old)}`)).json;
    expect(deliveries).toMatchObject([{ state: 'expired' }]);
    await Promise.all([here.close(), other.close()]);
    await database.drop();
  });

  it('are none at first, and shown with the other fields of the channel', async () => {
    const channel = await newChannel(undefined, ['kind']);
    const { json } = await admin.get(channel.path);
    expect(json).toEqual({
      id: lastPart(channel.path),
      name: channel.naam,
      documentationLink: '',
      filters: ['kind'],
      deduplication: null,
      maxAgeSeconds: null,
      bodyRetentionDays: null,
    });
    expect((await admin.get('/admin/v1/channels')).json.channels).toContainEqual(json);
  });

  it('change one by one, and are removed with null', async () => {
    const { path } = await newChannel({ deduplication: { fields: ['actie', 'actie'] } });
    const week = { fields: ['actie'], withinSeconds: 604_800 };
    expect((await admin.get(path)).json).toMatchObject({ deduplication: week, maxAgeSeconds: null });
    expect((await admin.patch(path, { maxAgeSeconds: 60 })).json).toMatchObject({
      deduplication: week,
      maxAgeSeconds: 60,
    });
    expect((await admin.patch(path, {})).json).toMatchObject({ deduplication: week, maxAgeSeconds: 60 });
    expect((await admin.patch(path, { deduplication: null })).json).toMatchObject({
      deduplication: null,
      maxAgeSeconds: 60,
    });
  });

  it('outlive a change of the kanaal', async () => {
    const { path, naam } = await newChannel({ maxAgeSeconds: 60 });
    const id = lastPart(path);
    expect((await admin.api.put(`/kanaal/${id}`, { naam, filters: ['other'] })).status).toBe(200);
    expect((await admin.get(path)).json).toMatchObject({ filters: ['other'], maxAgeSeconds: 60 });
  });

  it.each<[object, string]>([
    [{ deduplication: {} }, 'deduplication.fields required'],
    [{ deduplication: { fields: [] } }, 'deduplication.fields empty'],
    [{ deduplication: { fields: ['aanmaakdatum'] } }, 'deduplication.fields.0 invalid'],
    [{ deduplication: { fields: ['actie', 'kenmerken.'] } }, 'deduplication.fields.1 invalid'],
    [{ deduplication: { fields: ['kenmerken.kindd'] } }, 'deduplication.fields.0 invalid'],
    [{ deduplication: { fields: ['actie'], withinSeconds: 0 } }, 'deduplication.withinSeconds min_value'],
    [{ deduplication: { fields: ['actie'], withinSeconds: 2_592_001 } }, 'deduplication.withinSeconds max_value'],
    [{ deduplication: { fields: ['actie'], window: 5 } }, 'deduplication.window unknown'],
    [{ maxAgeSeconds: 0 }, 'maxAgeSeconds min_value'],
    [{ maxAgeSeconds: 1.5 }, 'maxAgeSeconds invalid'],
    [{ maxAgeSeconds: '60' }, 'maxAgeSeconds invalid'],
    [{ name: 'x' }, 'name unknown'],
  ])('refuse %j', async (rules, refusal) => {
    const { path } = await newChannel(undefined, ['kind']);
    const { status, json } = await admin.patch(path, rules);
    expect(status).toBe(400);
    expect(json.invalidParams.map(({ name, code }) => `${name} ${code}`)).toEqual([refusal]);
  });

  it('are of channels that exist', async () => {
    const nowhere = `/admin/v1/channels/${randomUUID()}`;
    expect((await admin.get(nowhere)).status).toBe(404);
    expect((await admin.patch(nowhere, { maxAgeSeconds: 60 })).status).toBe(404);
  });
});

describe('a channel that an operator adds', () => {
  const path = '/admin/v1/channels';

  it('is one that can be published on, with its rules, and as its publisher would have made it', async () => {
    const name = `  ${randomUUID()} `;
    const rules = { deduplication: { fields: ['kenmerken.kind'], withinSeconds: 60 }, maxAgeSeconds: 5 };
    const { status, json, headers } = await admin.post(path, { name, filters: [' kind '], ...rules });
    expect(status).toBe(201);
    const naam = name.trim();
    expect(json).toEqual({
      id: expect.any(String),
      name: naam,
      documentationLink: '',
      filters: ['kind'],
      ...rules,
      bodyRetentionDays: null,
    });
    const read = await admin.get(`${path}/${json.id}`);
    expect([read.json, read.headers.get('etag')]).toEqual([json, headers.get('etag')]);
    expect((await admin.api.get(`/kanaal?naam=${naam}`)).list).toMatchObject([{ naam, filters: ['kind'] }]);
    const aanmaakdatum = new Date().toISOString();
    const kenmerken = { kind: 'x' };
    expect((await publish({ naam, path }, { aanmaakdatum, kenmerken })).status).toBe(201);
  });

  it('can be changed as its publisher can change it', async () => {
    const { path: own, naam } = await newChannel({ maxAgeSeconds: 60 }, ['kind']);
    const changes = { documentationLink: 'https://docs.example.org/é', filters: ['kind', 'other'] };
    expect((await admin.patch(own, changes)).json).toMatchObject({ name: naam, maxAgeSeconds: 60, ...changes });
    expect((await admin.patch(own, { documentationLink: '', filters: [] })).json).toMatchObject({ filters: [] });
  });

  it('keeps the filters that its deduplication goes by, unless that goes as well', async () => {
    const { path: own } = await newChannel({ deduplication: { fields: ['kenmerken.Kind'] } }, ['kind', 'other']);
    const refused = await admin.patch(own, { filters: ['other'] });
    expect([refused.status, refused.json.invalidParams]).toEqual([400, [expect.objectContaining({ name: 'filters' })]]);
    expect((await admin.patch(own, { filters: ['other'], deduplication: null })).status).toBe(200);
    // A name that a publisher took away does not stand in the way of anything else.
    const { path: former } = await newChannel({ deduplication: { fields: ['kenmerken.kind'] } }, ['kind']);
    await admin.api.patch(`/kanaal/${lastPart(former)}`, { filters: ['other'] });
    expect((await admin.patch(former, { maxAgeSeconds: 5 })).status).toBe(200);
  });

  const names: Record<string, string> = { naam: 'name', documentatieLink: 'documentationLink' };
  const emoji = (count: number) => '\u{1f4ec}'.repeat(count);

  it.each<object>([
    {},
    { naam: null },
    { naam: '' },
    { naam: ' ' },
    { naam: emoji(51) },
    { naam: ['x'] },
    { naam: 'a\0b' },
    { naam: 'x', documentatieLink: null },
    { naam: 'x', documentatieLink: 'docs' },
    { naam: 'x', documentatieLink: 'ftp://docs.example.org' },
    { naam: 'x', documentatieLink: 'https://user:password@docs.example.org' },
    { naam: 'x', documentatieLink: `https://docs.example.org/${'x'.repeat(200)}` },
    { naam: 'x', filters: null },
    { naam: 'x', filters: 'kind' },
    { naam: 'x', filters: ['kind', ''] },
    { naam: 'x', filters: ['x'.repeat(101)] },
    { naam: 'x', filters: [null] },
    { naam: 'x', filters: [[]] },
  ])('is refused like a kanaal: %j', async (kanaal) => {
    const own = Object.fromEntries(Object.entries(kanaal).map(([name, value]) => [names[name] ?? name, value]));
    const [asKanaal, asChannel] = [await admin.api.post('/kanaal', kanaal), await admin.post(path, own)];
    const refusals = ({ json }: { json: { invalidParams: { name: string; code: string }[] } }) =>
      json.invalidParams.map(({ name, code }) => `${names[name] ?? name} ${code}`);
    expect(asChannel.status).toBe(400);
    expect(refusals(asChannel)).toEqual(refusals(asKanaal as never));
  });

  it('has 50 characters at most, however many bytes those are, and a name that is free', async () => {
    const name = emoji(50);
    expect((await admin.post(path, { name })).status).toBe(201);
    const { json } = await admin.post(path, { name });
    expect(json.invalidParams).toMatchObject([{ name: 'name', code: 'unique' }]);
  });

  it('is refused with a deduplication by what it cannot be filtered on', async () => {
    const rules = { filters: ['kind'], deduplication: { fields: ['kenmerken.kindd'] } };
    const { json } = await admin.post(path, { name: randomUUID(), ...rules });
    expect(json.invalidParams).toMatchObject([{ name: 'deduplication.fields.0', code: 'invalid' }]);
  });
});

describe('de-duplication', () => {
  const fields = {
    hoofdObject: { hoofdObject: 'http://openzaak:8000/zaken/2' },
    resource: { resource: 'besluit' },
    resourceUrl: { resourceUrl: 'http://openzaak:8000/statussen/2' },
    actie: { actie: 'update' },
    'kenmerken.objectType': { kenmerken: { object_type: 'b', other: 'x' } },
  };

  it('is off by default', async () => {
    const channel = await newChannel();
    const [first, second] = [await publish(channel), await publish(channel)];
    expect([duplicateOf(second), idOf(first) === idOf(second)]).toEqual([null, false]);
    await eventually(() => ofChannel(channel).length === 2, 'both to arrive');
  });

  it.each(Object.entries(fields))('goes by %s alone when that is the rule', async (field, otherwise) => {
    const channel = await newChannel({ deduplication: { fields: [field] } }, ['object_type']);
    const kenmerken = { object_type: 'a', other: 'x' };
    const everythingElse = Object.fromEntries(
      Object.entries(fields).flatMap(([name, value]) => (name === field ? [] : Object.entries(value))),
    );
    const first = await publish(channel, { kenmerken });
    const same = await publish(channel, { ...everythingElse, kenmerken: { ...kenmerken, other: 'y' } });
    const other = await publish(channel, { kenmerken, ...otherwise });
    expect([same.status, duplicateOf(same), idOf(same)]).toEqual([201, idOf(first), idOf(first)]);
    expect([other.status, duplicateOf(other)]).toEqual([201, null]);
    await eventually(() => ofChannel(channel).length === 2, 'the two that differ');
  });

  it('answers a duplicate with its own content, delivers only the first, and counts the duplicate', async () => {
    const channel = await newChannel({ deduplication: { fields: ['resourceUrl', 'actie'] } });
    const first = await publish(channel);
    const publisher = await admin.api.tokenWith('notificaties.publiceren');
    const second = await publish(channel, { resource: 'besluit' }, {}, publisher);
    expect([second.status, second.json.resource, duplicateOf(second)]).toEqual([201, 'besluit', idOf(first)]);
    await becomes(idOf(first), 'delivered');
    expect(ofChannel(channel)).toHaveLength(1);
    const labels = (result: string) => `{channel="${channel.naam}",result="${result}"}`;
    expect(await counted('heraut_publications_total', labels('duplicate'))).toBe(1);
    expect(await counted('heraut_publications_total', labels('accepted'))).toBe(1);
  });

  it('is told live, of a POST and of a PUT, with the notification that is delivered and the answer names', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie'] } });
    const first = await publish(channel);
    const put = (more: object, headers = {}) =>
      admin.api.put(`/notificaties/${channel.naam}`, notification(channel, more), { headers });
    await put({ actie: 'update' }, { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() });
    const told = await listen(`event=notification.duplicate&channel=${channel.naam}`);
    const answers = [await publish(channel), await put({})];
    expect(answers.map(duplicateOf)).toEqual([idOf(first), idOf(first)]);
    await eventually(() => told().length === 2, 'both events');
    expect(told().map(({ notificationId }) => notificationId)).toEqual(answers.map(idOf));
  });

  it('ends with its window', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie'], withinSeconds: 10 } });
    const first = await publish(channel);
    expect(duplicateOf(await publish(channel))).toBe(idOf(first));
    const next = await eventually(async () => {
      const published = await publish(channel);
      return duplicateOf(published) === null && published;
    }, 'the window to end');
    expect(idOf(next)).not.toBe(idOf(first));
    expect(duplicateOf(await publish(channel))).toBe(idOf(next));
  });

  it('treats two absent characteristics as equal, but never a notification with none of the fields', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie', 'kenmerken.version'] } });
    const first = await publish(channel);
    expect(duplicateOf(await publish(channel, { kenmerken: { other: 'x' } }))).toBe(idOf(first));
    expect(duplicateOf(await publish(channel, { kenmerken: { version: '' } }))).toBeNull();
    await admin.patch(channel.path, { deduplication: { fields: ['kenmerken.version'] } });
    expect([duplicateOf(await publish(channel)), duplicateOf(await publish(channel))]).toEqual([null, null]);
  });

  it('delivers one of many that come together', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie'] } });
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, nr) => publish(channel, {}, nr % 3 ? {} : { 'idempotency-key': randomUUID() })),
    );
    expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
    expect(answers.filter((published) => duplicateOf(published) === null)).toHaveLength(1);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    await becomes(idOf(answers[0]!), 'delivered');
    expect(ofChannel(channel)).toHaveLength(1);
  });

  it('goes together with Idempotency-Key: the same request is replayed, another one a duplicate', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie'] } });
    const [one, other] = [{ 'idempotency-key': randomUUID() }, { 'idempotency-key': randomUUID() }];
    const first = await publish(channel, {}, one);
    const seen = ({ headers }: ApiAnswer) => [headers.get('idempotent-replayed'), headers.get('duplicate-of')];
    expect(seen(await publish(channel, {}, one))).toEqual(['true', null]);
    expect(seen(await publish(channel, {}, other))).toEqual([null, idOf(first)]);
    expect(seen(await publish(channel, {}, other))).toEqual(['true', idOf(first)]);
    const reused = await publish(channel, { resource: 'besluit' }, other);
    expect([reused.status, reused.json.code]).toEqual([422, 'idempotency-key-reused']);
  });

  it('counts the first notification that is sent, not one that was too old for that', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie'] }, maxAgeSeconds: 3600 });
    const ago = (hours: number) => ({ aanmaakdatum: new Date(Date.now() - hours * 3_600_000).toISOString() });
    const forecast = async (more: object) => {
      const { json } = await admin.post('/admin/v1/explain', notification(channel, more));
      return (json.explanations as { fate: string }[])[0]?.fate;
    };
    const old = await publish(channel, ago(2));
    expect([await forecast(ago(2)), await forecast(ago(0))]).toEqual(['expired', 'sent']);
    const young = await publish(channel, ago(0));
    await becomes(idOf(young), 'delivered');
    expect([duplicateOf(young), duplicateOf(await publish(channel, ago(2)))]).toEqual([null, idOf(young)]);
    expect([await forecast(ago(2)), await forecast(ago(0))]).toEqual(['duplicate', 'duplicate']);
    expect(await deliveriesOf(idOf(old))).toMatchObject([{ state: 'expired' }]);
  });

  it('does not count a notification that may still be replaced, so that no content is lost by replacing it', async () => {
    const channel = await newChannel({ deduplication: { fields: ['actie'] } });
    const headers = { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() };
    const key = randomUUID();
    const put = (more: object) => admin.api.put(`/notificaties/${key}`, notification(channel, more), { headers });
    await put({});
    const published = await publish(channel);
    expect(duplicateOf(published)).toBeNull();
    expect((await put({ actie: 'update' })).status).toBe(200);
    await becomes(idOf(published), 'delivered');
  });

  describe('where a PUT for now replaces one that was scheduled', () => {
    let channel: TestChannel;
    let put: (more: object, headers?: Record<string, string>) => Promise<ApiAnswer>;
    let scheduled: ApiAnswer;

    beforeEach(async () => {
      channel = await newChannel({ deduplication: { fields: ['actie'] } });
      const key = randomUUID();
      put = (more, headers) => admin.api.put(`/notificaties/${key}`, notification(channel, more), { headers });
      scheduled = await put({}, { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() });
    });

    it('counts its new content, which may not be replaced any more', async () => {
      expect(duplicateOf(await put({ actie: 'update' }))).toBeNull();
      expect(duplicateOf(await publish(channel, { actie: 'update' }))).toBe(idOf(scheduled));
      await becomes(idOf(scheduled), 'delivered');
      expect(ofChannel(channel)).toHaveLength(1);
    });

    it('sends neither content where the new one was published before, and says so however often it is asked', async () => {
      const first = await publish(channel, { actie: 'update' });
      const [second, third] = [await put({ actie: 'update' }), await put({ actie: 'update' })];
      expect([second, third].map(({ status }) => status)).toEqual([200, 200]);
      expect([second, third].map(duplicateOf)).toEqual([idOf(first), idOf(first)]);
      expect([second, third].map(idOf)).toEqual([idOf(first), idOf(first)]);
      expect([second, third].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
      expect(await deliveriesOf(idOf(scheduled))).toMatchObject([{ state: 'cancelled' }]);
      const labels = `{channel="${channel.naam}",result="duplicate"}`;
      expect(await counted('heraut_publications_total', labels)).toBe(1);
      await becomes(idOf(first), 'delivered');
      expect(ofChannel(channel)).toHaveLength(1);
    });
  });
});

describe('a greatest age', () => {
  const aSecondAgo = () => new Date(Date.now() - 1000).toISOString();

  it('is off by default', async () => {
    const channel = await newChannel();
    const published = await publish(channel, { aanmaakdatum: '1999-12-31T23:59:59Z' });
    await becomes(idOf(published), 'delivered');
    expect(receivedOf(idOf(published))).toHaveLength(1);
  });

  it('accepts an older notification, records it as expired and does not send it', async () => {
    const channel = await newChannel({ maxAgeSeconds: 3600 });
    const before = await counted('heraut_deliveries_expired_total');
    const [old, young] = [await publish(channel), await publish(channel, { aanmaakdatum: aSecondAgo() })];
    expect([old.status, young.status]).toEqual([201, 201]);
    expect(await deliveriesOf(idOf(old))).toMatchObject([{ state: 'expired', attemptCount: 0, nextAttemptAt: null }]);
    await becomes(idOf(young), 'delivered');
    expect(receivedOf(idOf(old))).toEqual([]);
    expect(await counted('heraut_deliveries_expired_total')).toBe(before + 1);
    const labels = `{channel="${channel.naam}",result="expired"}`;
    expect(await counted('heraut_publications_total', labels)).toBe(1);
    const { json } = await admin.get(`/admin/v1/deliveries?state=expired`);
    expect(json.deliveries.map(({ notificationId }) => notificationId)).toContain(idOf(old));
  });

  it('ends a delivery whose next attempt would come too late', async () => {
    const channel = await newChannel({ maxAgeSeconds: 20 }); // the first wait is 25 s
    receiver.always(answer(503));
    const published = await publish(channel, { aanmaakdatum: aSecondAgo() });
    await becomes(idOf(published), 'expired');
    receiver.always(protectedReceiver);
    expect(await deliveriesOf(idOf(published))).toMatchObject([{ attemptCount: 1, lastStatus: 503 }]);
    expect(receivedOf(idOf(published))).toHaveLength(1);
  });

  it('ends a notification that is scheduled for later than that', async () => {
    const channel = await newChannel({ maxAgeSeconds: 10 });
    const headers = { 'deliver-after': new Date(Date.now() + 10_500).toISOString() };
    const published = await publish(channel, { aanmaakdatum: new Date().toISOString() }, headers);
    expect(await deliveriesOf(idOf(published))).toMatchObject([{ state: 'waiting' }]);
    await becomes(idOf(published), 'expired');
    expect(receivedOf(idOf(published))).toEqual([]);
  });

  it('does not keep an operator from having it sent', async () => {
    const channel = await newChannel({ maxAgeSeconds: 3600 });
    const id = idOf(await publish(channel));
    const [delivery] = await deliveriesOf(id);
    await admin.post(`/admin/v1/deliveries/${id}/${delivery!.subscriptionId}/retry`);
    await becomes(id, 'delivered');
    expect(receivedOf(id)).toHaveLength(1);
  });
});

describe('channels', () => {
  const path = '/admin/v1/channels';
  const list = async (query: Record<string, string>) => {
    const { json } = await admin.get(`${path}?${new URLSearchParams(query).toString()}`);
    const { channels, count, nextCursor } = json;
    return { found: (channels as { name: string }[]).map(({ name }) => name), count, nextCursor };
  };

  it('are listed all in one answer, or page by page, or by a part of id or name', async () => {
    const marker = randomUUID();
    const names = ['A', 'b', 'é'].map((first) => `${first}-${marker}`);
    for (const name of names.toReversed()) expect((await admin.post(path, { name })).status).toBe(201);
    const all = await admin.get(path);
    const { channels, count, nextCursor } = all.json;
    expect([count, nextCursor]).toEqual([channels.length, null]);
    expect(channels.map((each) => (each as { name: string }).name)).toEqual(expect.arrayContaining(names));

    const text = marker.toUpperCase();
    expect(await list({ text })).toEqual({ found: names, count: 3, nextCursor: null });
    const first = await list({ text, limit: '2' });
    expect([first.found, first.count]).toEqual([names.slice(0, 2), 3]);
    const second = await list({ text, limit: '2', cursor: first.nextCursor! });
    expect(second).toEqual({ found: names.slice(2), count: 3, nextCursor: null });

    const { id } = channels.find((each) => (each as { name: string }).name === names[1]) as { id: string };
    expect((await list({ text: id })).found).toEqual([names[1]]);
  });

  it.each(['limit=0', 'limit=501', 'cursor=AAAA', 'text='])('are not listed by ?%s', async (query) => {
    const { status, json } = await admin.get(`${path}?${query}`);
    expect([status, json.invalidParams.map(({ name }) => name)]).toEqual([400, [query.split('=')[0]]]);
  });
});
