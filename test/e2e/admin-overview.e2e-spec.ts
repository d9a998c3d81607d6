import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { addActivity } from '../../src/activity/activity-rows.js';
import { noCounts } from '../../src/activity/tally.js';
import { TallyWriter } from '../../src/activity/tally-writer.service.js';
import { Measurements } from '../../src/dispatching/measurements.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { addressOf } from '../../src/endpoints/origin.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { version } from '../../src/infra/version.js';
import type { OverviewAnswer } from '../../src/overview/overview-io.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { AdminApi } from '../support/admin-api.js';
import { superuser } from '../support/api.js';
import { makeCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { answer, Receiver } from '../support/receiver.js';

const path = '/admin/v1/endpoints';

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([AdminApi.start({ TEST_CALLBACK_AUTH: 'false' }), Receiver.start()]);
});
afterAll(() => Promise.all([admin.close(), receiver.stop()]));

/**
 * A subscription that was proved when its callback still answered. An endpoint to which none leads is closed by the
 * dispatcher, whenever it looks for such.
 */
const leadTo = (callbackUrl: string) =>
  insertSubscription((...asked) => admin.api.app.get(Postgres).dataSource.query(...asked), {
    callback_url: callbackUrl,
  });

describe('open endpoints, as an operator sees them', () => {
  let origin: string;

  beforeEach(() => {
    // A name that is never resolved: nobody calls it here.
    origin = `https://${randomUUID()}.invalid`;
  });

  const open = (address: string, reason = 'ECONNREFUSED') => admin.api.app.get(OpenEndpoints).open(address, reason, 5);
  const listed = async () => (await admin.get(path)).json.endpoints as { address: string; subscriptionCount: number }[];
  const reset = (body: unknown, request?: object) => admin.post(`${path}/reset`, body, request);

  it('are listed with what is known of them, and with how many subscriptions lead there', async () => {
    const other = `https://${randomUUID()}.invalid`;
    for (const url of [`${origin}/1`, `${origin}/2`, `${origin}/2`, `${other}/1`, `${other}/2`]) await leadTo(url);
    await open(origin, 'ETIMEDOUT');
    await open(`${other}/1`, 'HTTP 500');
    const { json } = await admin.get(path);
    expect(json.endpoints).toEqual([
      {
        address: origin,
        reason: 'ETIMEDOUT',
        openedAt: expect.any(String),
        failureCount: 5,
        probeCount: expect.any(Number),
        nextProbeAt: expect.any(String),
        subscriptionCount: 3,
        subscriptionIds: [expect.any(String), expect.any(String), expect.any(String)],
      },
      expect.objectContaining({ address: `${other}/1`, subscriptionCount: 1 }),
    ]);
    const leadingTo = async (query: object) => {
      const found = await admin.get(`/admin/v1/subscriptions?${new URLSearchParams({ ...query })}`);
      return (found.json['subscriptions'] as { id: string; callbackUrl?: string }[]).map(
        ({ callbackUrl }) => callbackUrl,
      );
    };
    const there = [`${origin}/1`, `${origin}/2`, `${origin}/2`];
    expect(await leadingTo({ endpoint: origin })).toEqual(there);
    expect(await leadingTo({ endpoint: `${origin}/2`, limit: '1' })).toEqual([`${origin}/2`]);
    expect(await leadingTo({ endpoint: `${origin}/2`, state: 'paused' })).toEqual([]);
    expect(await leadingTo({ endpoint: `${origin.toUpperCase()}/2#part` })).toEqual([`${origin}/2`, `${origin}/2`]);
    expect(await leadingTo({ state: 'parked' })).toEqual([...there, `${other}/1`]);
    expect(await leadingTo({ state: 'parked', limit: '10', text: other })).toEqual([`${other}/1`]);
    await reset({ address: origin });
    // The list of before is kept for those who ask for it again, but not beyond this.
    expect(await leadingTo({ state: 'parked' })).toEqual([`${other}/1`]);
    await reset({ address: `${other}/1` });
  });

  it('are closed by a reset, which is reported', async () => {
    await leadTo(`${origin}/a?b=c%20d`);
    await open(`${origin}/a?b=c%20d`);
    expect((await reset({ address: `${origin}/a?b=c%20d` })).status).toBe(204);
    expect(await listed()).toEqual([]);
    expect(admin.api.logged).toContainEqual(
      expect.objectContaining({ event: 'endpoint.closed', address: `${origin}/a?b=c%20d`, by: 'operator' }),
    );
  });

  it('are closed by a reset of the callback URL as it is shown, in the address that is meant', async () => {
    const callbackUrl = `${origin.toUpperCase()}/é`;
    await leadTo(callbackUrl);
    const address = `${origin}/%C3%A9`;
    await open(address);
    expect((await reset({ address: callbackUrl })).status).toBe(204);
    expect(await listed()).toEqual([]);
    const { json } = await admin.get(`/admin/v1/audit?${new URLSearchParams({ subject: `endpoint/${address}` })}`);
    expect(json).toMatchObject({ entries: [{ action: 'endpoint.reset' }] });
    // One that reads as it was given comes first: the origin alone, not the URL that it is as well.
    await leadTo(origin);
    await open(origin);
    await open(`${origin}/`);
    expect((await reset({ address: origin })).status).toBe(204);
    expect((await listed()).map(({ address: left }) => left)).toEqual([`${origin}/`]);
    // So it is when the same is asked once more, as by a script that got no answer.
    for (const again of [origin, origin.replace('http', 'HTTP')])
      expect((await reset({ address: again })).status).toBe(404);
    expect((await listed()).map(({ address: left }) => left)).toEqual([`${origin}/`]);
    await reset({ address: `${origin}/` });
  });

  it('are named, by its callback URL, of a subscription that has a TLS identity of its own', async () => {
    const callbackUrl = `${origin}/hook`;
    const withIdentity = async (nr: number) => {
      const id = await leadTo(callbackUrl);
      const tls = { authority: makeCertificate(`authority-${nr}`).certificate };
      expect((await admin.patch(`/admin/v1/subscriptions/${id}/credentials`, { tls })).status).toBe(200);
      return { id, address: addressOf(admin.api.app.get(SubscriptionDirectory).find(id)!) };
    };
    const [one, other] = [await withIdentity(1), await withIdentity(2)];
    const leadingTo = async (endpoint: string, more: object = {}) => {
      const { json } = await admin.get(`/admin/v1/subscriptions?${new URLSearchParams({ endpoint, ...more })}`);
      return (json['subscriptions'] as { id: string }[]).map(({ id }) => id);
    };
    await Promise.all([open(one.address), open(other.address)]);
    for (const given of [callbackUrl, `${origin.toUpperCase()}/hook#part`])
      expect(await leadingTo(given)).toEqual([one.id, other.id]);
    expect(await leadingTo(one.address)).toEqual([one.id]);
    expect((await reset({ address: one.address })).status).toBe(204);
    await open(one.address);
    expect((await reset({ address: callbackUrl })).status).toBe(204);
    expect(await listed()).toEqual([]);
    for (const { address } of [one, other]) {
      const { json } = await admin.get(`/admin/v1/audit?${new URLSearchParams({ subject: `endpoint/${address}` })}`);
      expect((json['entries'] as object[])[0]).toMatchObject({ action: 'endpoint.reset', before: { failures: 5 } });
    }
    // One without an identity is what the URL reads like, whether it is open or paused or not.
    const plain = await leadTo(callbackUrl);
    await open(one.address);
    expect([await leadingTo(callbackUrl), await leadingTo(callbackUrl, { state: 'paused' })]).toEqual([[plain], []]);
    await admin.post(`/admin/v1/subscriptions/${one.id}/pause`);
    expect(await leadingTo(callbackUrl, { state: 'paused' })).toEqual([]);
    const refused = await reset({ address: callbackUrl });
    expect([refused.status, refused.json.detail]).toEqual([404, expect.stringContaining('as it is listed')]);
    expect((await reset({ address: one.address })).status).toBe(204);
    await admin.post(`/admin/v1/subscriptions/${one.id}/resume`);
  });

  it('are told apart from those that only cannot take it as fast as it comes', async () => {
    for (const url of [`${origin}/slow`, `https://${randomUUID()}.invalid/parked`]) await leadTo(url);
    const subscriptions = (await admin.get('/admin/v1/subscriptions')).json.subscriptions as {
      id: string;
      callbackUrl: string;
    }[];
    const [slow, parked] = subscriptions.slice(-2);
    await open(parked!.callbackUrl);
    const sql = (text: string, values: unknown[] = []) =>
      admin.api.app.get(Postgres).dataSource.query<unknown>(text, values);
    await sql(
      `INSERT INTO held_subscription (subscription_id, release_window, outstanding, is_backlog, look_at)
       SELECT unnest($1::uuid[]), 40, 7, true, now() + interval '5 minutes'`,
      [[slow!.id, parked!.id]],
    );
    expect((await admin.get(path)).json['paced']).toEqual([
      {
        subscriptionId: slow!.id,
        callbackUrl: slow!.callbackUrl,
        window: 40,
        outstanding: 7,
        heldAt: expect.any(String),
      },
    ]);
    await sql('DELETE FROM held_subscription');
    await reset({ address: parked!.callbackUrl });
  });

  it('are known here although another process opened them a moment ago', async () => {
    await leadTo(origin);
    await admin.api.app
      .get(Postgres)
      .dataSource.query(
        `INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, 'reset', 5, now())`,
        [origin],
      );
    expect((await listed()).map(({ address }) => address)).toEqual([origin]);
    await reset({ address: origin });
  });

  it('are not reset where they are not open', async () => {
    const { status, json } = await reset({ address: origin });
    expect([status, json.code]).toEqual([404, 'not_found']);
  });

  it.each<[unknown, string]>([
    [{}, 'address required'],
    [{ address: '' }, 'address blank'],
    [{ address: 1 }, 'address invalid'],
    [{ address: `https://${'a'.repeat(2148)}/` }, 'address max_length'],
    [{ address: 'https://a.invalid\0' }, 'address invalid'],
    [{ address: 'https://a.invalid', force: true }, 'force unknown'],
  ])('are not reset by %j', async (body, refusal) => {
    const { status, json } = await reset(body);
    expect([status, json.invalidParams?.map(({ name, code }) => `${name} ${code}`)]).toEqual([400, [refusal]]);
  });
});

describe('the whole installation at a glance', () => {
  const overview = async () => (await admin.get('/admin/v1/overview')).json as unknown as OverviewAnswer;
  /** As the dispatcher does it every ten seconds. */
  const measure = async () => {
    for (const { run } of admin.api.app.get(Measurements).tasks) await run(new AbortController().signal);
  };
  /** The answer is computed at most once in two seconds. */
  const eventuallyShows = (what: string, is: (answer: OverviewAnswer) => boolean) =>
    eventually(async () => {
      const found = await overview();
      return is(found) ? found : undefined;
    }, what);
  const countAgo = (seconds: number, counts: object, kind: 'all' | 'fetched' = 'all') => {
    const postgres = admin.api.app.get(Postgres);
    const items = [{ kind, id: '', counts: { ...noCounts(), ...counts } }];
    return addActivity((statement, values) => postgres.query(statement, values), items, Date.now() - seconds * 1000);
  };
  const channel = `channel-${randomUUID()}`;
  const someId = '0b0c5bfa-2a4d-4c0e-9d3c-6d0f3f0a6a11';
  let ids: { good: string; gone: string; paused: string };

  const subscribe = async (path: string) => {
    const { json } = await admin.api.call('POST', `${admin.api.origin}/api/v1/abonnement`, {
      body: { callbackUrl: `${receiver.url}/${path}`, auth: 'x', kanalen: [{ naam: channel, filters: {} }] },
    });
    return lastPart(json.url);
  };

  beforeAll(async () => {
    await admin.api.call('POST', `${admin.api.origin}/api/v1/kanaal`, { body: { naam: channel, filters: [] } });
    ids = { good: await subscribe('good'), gone: await subscribe('gone'), paused: await subscribe('paused') };
    receiver.always((request, response) => answer(request.path.endsWith('gone') ? 410 : 204)(request, response));
    await admin.post(`/admin/v1/subscriptions/${ids.paused}/pause`);
    await admin.api.post('/notificaties', notificatie(channel));
    // Delivered to one, a dead letter of the second, held for the third.
    await eventually(async () => {
      const { json } = await admin.get(`/admin/v1/deliveries?channel=${channel}`);
      const states = json.deliveries.map(({ state }) => state).toSorted();
      return states.join() === 'delivered,failed,held' ? states : undefined;
    }, 'the end of the deliveries');
    // The end of a delivery is counted, and its subscription disabled, after it is in the ledger.
    await eventually(async () => {
      await admin.api.app.get(TallyWriter).write();
      const { json } = await admin.get('/admin/v1/activity/totals?of=subscription&span=1h');
      const counted = (json['totals'] as { id: string; gaveUp: number; delivered: number }[]).filter(
        ({ id, gaveUp, delivered }) => (id === ids.gone && gaveUp === 1) || (id === ids.good && delivered === 1),
      );
      return counted.length === 2;
    }, 'the ends to be counted');
    await eventually(
      async () => (await admin.get(`/admin/v1/subscriptions/${ids.gone}`)).json['disabledAt'],
      'the subscription that is gone to be disabled',
    );
    await admin.post(`/admin/v1/subscriptions/${ids.gone}/pause`);
    await measure();
  });

  it('says what is accepted, delivered, waiting and wrong, and how old each number is', async () => {
    await countAgo(30, { accepted: 60, delivered: 30 });
    await countAgo(150, { accepted: 1000, delivered: 1000, failedAttempts: 2 });
    await countAgo(150, { delivered: 1000 }, 'fetched'); // which no call has brought
    const shown = await eventuallyShows('the numbers', ({ activity }) => (activity?.lastMinute.accepted ?? 0) >= 60);
    const { activity, backlog, deadLetters, subscriptions } = shown;
    expect(shown.health).toEqual({
      status: 'ready',
      parts: expect.arrayContaining([{ name: 'postgres', status: 'up', error: null }]),
    });
    expect(shown.processes).toEqual([
      expect.objectContaining({ roles: ['api', 'worker', 'dispatcher'], isAlive: true, isThis: true, version }),
    ]);
    expect(activity!.lastMinutes.delivered).toBeGreaterThanOrEqual(1031);
    expect(activity!.lastMinutes.failedAttempts).toBe(3);
    expect(activity!.lastMinutes.successRate).toBeCloseTo(31 / 34, 1);
    expect(activity!.lastMinutes.deliveryP95Ms).toBeGreaterThan(0);
    expect(activity!.lastHour).toHaveLength(61);
    expect(Math.max(...activity!.lastHour.map(({ accepted }) => accepted))).toBeGreaterThanOrEqual(1000);
    expect(Date.now() - Date.parse(activity!.countedUntil)).toBeLessThan(60_000);
    expect(backlog!.held.paused).toEqual({ count: 1, isEstimate: false });
    expect(backlog!.oldestDueAt).toBeNull();
    expect(deadLetters).toEqual({
      measuredAt: backlog!.measuredAt,
      failed: { count: 1, isEstimate: false },
      expired: { count: 0, isEstimate: false },
      unknown: { count: 0, isEstimate: false },
    });
    const { origin } = new URL(receiver.url);
    const since = expect.any(String);
    expect(subscriptions.disabled).toEqual({ count: 1, latest: [{ id: ids.gone, receiver: origin, since }] });
    const paused = [ids.gone, ids.paused].map((id) => ({ id, receiver: origin, since }));
    expect(subscriptions.paused).toEqual({ count: 2, latest: paused });
    expect(subscriptions.haltedCount).toBe(2);
    const { json } = await admin.get('/admin/v1/subscriptions?state=paused');
    expect((json['subscriptions'] as { id: string }[]).map(({ id }) => id).toSorted()).toEqual(
      [ids.gone, ids.paused].toSorted(),
    );
    expect(subscriptions.troubled!.most).toEqual(
      expect.arrayContaining([
        { id: ids.gone, receiver: origin, unsent: 0, dead: 1 },
        { id: ids.paused, receiver: origin, unsent: 1, dead: 0 },
      ]),
    );
    expect(shown.replays).toEqual([]);
    expect(shown.alerts).toMatchObject({ openCount: expect.any(Number), latest: expect.any(Array) });
  });

  it('names the endpoints that are in trouble longest', async () => {
    const addresses = Array.from({ length: 6 }, (_, nr) => `https://${nr}-${randomUUID()}.invalid`);
    for (const address of addresses) {
      await leadTo(address);
      await admin.api.app.get(OpenEndpoints).open(address, 'ECONNREFUSED', 5, 60_000);
    }
    const { endpoints } = await eventuallyShows('six endpoints', ({ endpoints: { openCount } }) => openCount === 6);
    expect(endpoints.longest.map(({ address }) => address)).toEqual(addresses.slice(0, 5));
    await admin.api.app.get(OpenEndpoints).closeUnused(addresses);
  });

  it('is answered without a body where the same is known already', async () => {
    const again = await eventually(async () => {
      const { headers } = await admin.get('/admin/v1/overview');
      expect(headers.get('cache-control')).toBe('private, no-cache');
      const known = { headers: { 'if-none-match': `"other", W/${headers.get('etag')}` } };
      const found = await admin.get('/admin/v1/overview', known);
      return found.status === 304 ? found : undefined;
    }, 'an answer of the same two seconds');
    expect(again.text).toBe('');
  });

  it('is shown by channel, application and subscription, in buckets and in all', async () => {
    const totals = async (of: string) => {
      const { json } = await admin.get(`/admin/v1/activity/totals?of=${of}&span=1h`);
      return json['totals'] as { id: string }[];
    };
    const counts = noCounts();
    const lastAt = expect.any(String);
    expect(await totals('channel')).toContainEqual({ id: channel, ...counts, accepted: 1, lastAt });
    expect(await totals('application')).toContainEqual({ id: 'superuser', ...counts, accepted: 1, lastAt });
    const ofSubscriptions = await totals('subscription');
    expect(ofSubscriptions).toContainEqual({ id: ids.good, ...counts, delivered: 1, lastAt });
    expect(ofSubscriptions).toContainEqual({ id: ids.gone, ...counts, failedAttempts: 1, gaveUp: 1, lastAt });
    const { json: ofOne } = await admin.get(
      `/admin/v1/activity/totals?of=subscription&span=1h&ids=${ids.good.toUpperCase()},${someId}`,
    );
    expect([ofOne['totals'], ofOne['nextCursor']]).toEqual([[{ id: ids.good, ...counts, delivered: 1, lastAt }], null]);
    const shouted = await admin.get(`/admin/v1/activity?of=subscription&id=${ids.good.toUpperCase()}&span=1h`);
    expect((shouted.json['buckets'] as { delivered: number }[]).map((each) => each.delivered)).toContain(1);
    const { json } = await admin.get(`/admin/v1/activity?of=channel&id=${channel}&span=1h`);
    const buckets = json['buckets'] as { accepted: number }[];
    expect([json['bucketSeconds'], buckets.length]).toEqual([60, 60]);
    expect(buckets.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(1);
    const week = (await admin.get('/admin/v1/activity?span=7d')).json['buckets'] as { accepted: number }[];
    expect([week.length, week.at(-1)!.accepted + week.at(-2)!.accepted >= 1]).toEqual([168, true]);
  });

  it.each([
    ['?of=channel', 'id invalid'],
    ['?of=all&id=x', 'id invalid'],
    ['?id=x', 'id invalid'],
    ['?of=subscription', 'id invalid'],
    ['?of=subscription&id=x', 'id invalid'],
    ['?of=channel&id=%00', 'id invalid'],
    ['?of=callback&id=x', 'of invalid_choice'],
    ['?span=1y', 'span invalid_choice'],
    ['/totals?of=all', 'of invalid_choice'],
    ['/totals?of=channel&cursor=!', 'cursor invalid'],
    [`/totals?of=channel&ids=${someId}`, 'ids invalid'],
    ['/totals?of=subscription&ids=x', 'ids.0 invalid'],
    [`/totals?of=subscription&ids=${someId}&cursor=YQ`, 'cursor invalid'],
  ])('is not asked for by %s', async (query, refusal) => {
    const { status, json } = await admin.get(`/admin/v1/activity${query}`);
    expect([status, json.invalidParams?.map(({ name, code }) => `${name} ${code}`)]).toEqual([400, [refusal]]);
  });

  it('is asked for of a hundred subscriptions at once, at most', async () => {
    const ask = (count: number) =>
      admin.get(`/admin/v1/activity/totals?of=subscription&ids=${Array(count).fill(someId).join()}`);
    expect((await ask(100)).json['totals']).toEqual([]);
    const { status, json } = await ask(101);
    expect([status, json.invalidParams]).toMatchObject([400, [{ name: 'ids', code: 'max_length' }]]);
  });

  it('runs on processes and servers of these versions, with these settings, and tells no secret', async () => {
    const { json, text } = await admin.get('/admin/v1/installation');
    expect(json).toMatchObject({
      version,
      processes: [{ node: process.versions.node, host: hostname(), isThis: true, isAlive: true }],
      servers: {
        database: {
          kind: 'postgresql',
          version: expect.stringMatching(/^1\d\.\d/),
          isUp: true,
          bytes: { bytes: expect.any(Number) },
        },
        queue: { kind: 'in-memory', version: null, isUp: true },
        locks: { kind: 'database', version: null, isUp: true },
      },
      settings: expect.arrayContaining([
        { name: 'TEST_CALLBACK_AUTH', value: 'false', default: 'true' },
        { name: 'SUPERUSER_SECRET', value: null, default: null },
      ]),
    });
    expect(text).not.toContain(superuser.secret);
  });
});
