import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { mostBytes } from '../../src/explaining/find-explained.js';
import { ExplanationReader } from '../../src/explaining/explanation-reader.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { lowestId, lowestIdAt } from '../../src/ledger/partitions.js';
import { AdminApi } from '../support/admin-api.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { Receiver } from '../support/receiver.js';

interface Explanation {
  subscriptionId: string;
  text: string;
  isMatched: boolean | null;
  verdict: string;
  entries: { number: number; isMet: boolean; filters: object[] }[];
  entryCount: number;
  catalogue: string;
  catalogueReason: string;
  delivery: { state: string; heldFor: string | null; behind: string | null; endpoint: object | null } | null;
  fate: string;
  heldFor: string | null;
  behind: string | null;
}

interface Page {
  explanations: Explanation[];
  nextCursor: string | null;
  matchedCount: number;
  subscribedCount: number;
  duplicateOf: string | null;
  isTooOld: boolean;
  body: string;
}

// Nothing is delivered: what is accepted stays as it was accepted, or as the test changes it.
const [admin, receiver] = await Promise.all([
  AdminApi.start({ ROLES: 'api', TEST_CALLBACK_AUTH: 'false' }),
  Receiver.start(),
]);
const postgres = admin.api.app.get(Postgres);
const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);

let channel: string;
let callbackUrl: string;

afterAll(() => Promise.all([admin.close(), receiver.stop()]));

async function newChannel(rules?: object): Promise<string> {
  const naam = randomUUID();
  const { json } = await admin.api.post('/kanaal', { naam, filters: ['kind', 'region'] });
  if (rules) await admin.patch(`/admin/v1/channels/${lastPart(json.url)}`, rules);
  return naam;
}

async function subscribe(...filters: Record<string, string>[]): Promise<string> {
  const kanalen = filters.map((each) => ({ naam: channel, filters: each }));
  const { json } = await admin.api.post('/abonnement', { callbackUrl, auth: 'Bearer x', kanalen });
  return lastPart(json.url);
}

const notification = (more: object = {}) =>
  notificatie(channel, { kenmerken: { kind: 'a', region: 'north' }, ...more });

async function publish(more: object = {}): Promise<string> {
  const { status, headers } = await admin.api.post('/notificaties', notification(more));
  expect(status).toBe(201);
  return headers.get('notification-id')!;
}

const explain = async (id: string, query: Record<string, string> = {}): Promise<Page> => {
  const path = `/admin/v1/notifications/${id}/explanations?${new URLSearchParams(query).toString()}`;
  return (await admin.get(path)).json as unknown as Page;
};
const explainOne = async (id: string, subscription: string): Promise<Explanation> =>
  (await explain(id, { subscription })).explanations[0]!;
const dryRun = async (more: object = {}, query: Record<string, string> = {}): Promise<Page> => {
  const path = `/admin/v1/explain?${new URLSearchParams(query).toString()}`;
  return (await admin.post(path, notification(more))).json as unknown as Page;
};
const setState = (id: string, subscription: string, columns: string) =>
  sql(`UPDATE delivery SET ${columns} WHERE notification_id = $1 AND subscription_id = $2`, [id, subscription]);

async function onNewChannel(rules?: object): Promise<void> {
  channel = await newChannel(rules);
  callbackUrl = `${receiver.url}/${randomUUID()}`;
}

describe('why a subscription got a notification, or did not', () => {
  beforeEach(() => onNewChannel());

  it('is told by the time of Postgres, whatever the clock of the process says', async () => {
    const subscription = await subscribe({});
    const headers = { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() };
    const accepted = await admin.api.post('/notificaties', notification(), { headers });
    const reader = admin.api.app.get(ExplanationReader, { strict: false });
    const found = (await reader.findNotification(accepted.headers.get('notification-id')!))!;
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 6 * 3_600_000 });
    const explanation = await reader.explain(found, subscription).finally(() => vi.useRealTimers());
    expect(explanation!.situation).toMatch(/^It is scheduled/);
  });

  it('is told by the names that it was matched by, also where they are sent with adjacent capitals', async () => {
    const notMet = await subscribe({ kind: 'a', region: 'north', punt_x_y: '1' });
    const met = await subscribe({ kind: 'a', region: 'north', punt_x_y: '2' });
    const id = await publish({ kenmerken: { kind: 'a', region: 'north', punt_x_y: '2' } });
    expect(await explainOne(id, notMet)).toMatchObject({ isMatched: false, verdict: 'filters-not-met' });
    expect(await explainOne(id, met)).toMatchObject({ isMatched: true, verdict: 'matched' });
  });

  it('is told by the entry and the name that it was matched by, or that kept it away', async () => {
    const met = await subscribe({ kind: 'b' }, { kind: 'a', region: '*' });
    const notMet = await subscribe({ kind: 'a', region: 'south' });
    const elsewhere = await subscribe();
    const id = await publish();
    const { explanations, nextCursor } = await explain(id);
    expect(nextCursor).toBeNull();
    expect(explanations).toEqual([
      expect.objectContaining({
        subscriptionId: met,
        isMatched: true,
        verdict: 'matched',
        entryCount: 2,
        catalogue: 'as-of-acceptance',
        text: expect.stringMatching(/^It matched by entry 2, by kind 'a', region \(any value\)\. It /),
        delivery: expect.objectContaining({ heldFor: null }),
      }),
      expect.objectContaining({
        subscriptionId: notMet,
        isMatched: false,
        verdict: 'filters-not-met',
        entries: [
          {
            number: 1,
            isMet: false,
            filters: [
              { name: 'kind', wanted: 'a', actual: 'a', result: 'equal' },
              { name: 'region', wanted: 'south', actual: 'north', result: 'different' },
            ],
          },
        ],
        text: `No entry about ${channel} was met: entry 1 wanted region 'south', and it was 'north'.`,
        delivery: null,
      }),
    ]);
    expect(await explainOne(id, elsewhere)).toMatchObject({ verdict: 'not-subscribed', isMatched: false });
  });

  it('is told by what the subscription was when the notification was accepted', async () => {
    const [changed, deleted] = [await subscribe({}), await subscribe({})];
    const id = await publish();
    // As if all of that had been a while ago. The ledger decides the order of events within one second.
    await sql("UPDATE subscription SET created_at = created_at - interval '1 hour'");
    await sql("UPDATE notification SET accepted_at = accepted_at - interval '10 minutes' WHERE id = $1", [id]);
    await sql(
      `INSERT INTO audit_entry (at, action, subject, changed_secrets)
       VALUES (now() - interval '1 hour', 'thing.made', 'thing/1', '{}')`,
    );
    await admin.api.patch(`/abonnement/${changed}`, { kanalen: [{ naam: channel, filters: { kind: 'z' } }] });
    await admin.api.delete(`/abonnement/${deleted}`);
    const later = await subscribe({});
    for (const each of [changed, deleted])
      expect(await explainOne(id, each)).toMatchObject({
        verdict: 'matched',
        entries: [{ number: 1, isMet: true, filters: [] }],
        catalogue: 'as-of-acceptance',
      });
    expect(await explainOne(id, later)).toMatchObject({
      verdict: 'created-later',
      isMatched: false,
      catalogue: 'as-of-acceptance',
      delivery: null,
    });
    const { explanations } = await explain(id);
    expect(explanations.map(({ subscriptionId }) => subscriptionId)).toEqual(
      expect.arrayContaining([changed, deleted, later]),
    );
  });

  it('is told by the subscription that there was, where another one has its id now', async () => {
    const subscription = await subscribe({ kind: 'a' });
    const id = await publish();
    // As if it had been deleted, and made again for others, in the next hours.
    await sql(
      `INSERT INTO audit_entry (at, action, subject, before, changed_secrets)
       VALUES (now() + interval '1 hour', 'subscription.deleted', $1, $2, '{}'),
         (now() + interval '2 hours', 'subscription.created', $1, NULL, '{}')`,
      [`subscription/${subscription}`, { channels: [{ channel, filters: { kind: 'a' } }], disabledAt: null }],
    );
    await sql("UPDATE subscription SET created_at = now() + interval '2 hours', channels = '[]' WHERE id = $1", [
      subscription,
    ]);
    expect(await explainOne(id, subscription)).toMatchObject({
      verdict: 'matched',
      entries: [{ number: 1, isMet: true }],
      catalogue: 'as-of-acceptance',
      catalogueReason: 'The audit log has every change since.',
    });
  });

  it('is told in pages for which no more is read than 4 MiB, or one subscription that is larger, each of them once', async () => {
    const subscribed = (of: Record<string, string>[]) => Promise.all(of.map((filters) => subscribe(filters)));
    const [met, others] = [await subscribed(Array(9).fill({})), await subscribed(Array(3).fill({ kind: 'no' }))];
    // They would make the pages of the other tests short.
    onTestFinished(async () => void (await sql('DELETE FROM subscription WHERE id = ANY ($1)', [[...met, ...others]])));
    const [large, old, huge, ...now] = met as [string, string, string, ...string[]];
    const id = await publish();
    await sql(
      `INSERT INTO audit_entry (at, action, subject, changed_secrets)
       VALUES (now() - interval '1 hour', 'thing.made', 'thing/1', '{}')`,
    );
    const mebibytes = (count: number) => ({ channel: 'others', filters: { kind: 'z'.repeat(count * 1024 * 1024) } });
    // Its new channels are as long; the length of both together is noted.
    const change = (subscription: string, channels: object[], isMeasured = true) =>
      sql(
        `INSERT INTO audit_entry (at, action, subject, before, after, bytes, changed_secrets)
         SELECT clock_timestamp() + interval '1 hour', 'subscription.changed', $1, before, before,
           CASE WHEN $3 THEN 2 * octet_length(before::text) END, '{}'
         FROM (SELECT $2::json AS before) AS given`,
        [`subscription/${subscription}`, JSON.stringify({ channels }), isMeasured],
      );
    const then = { channel, filters: {} };
    await sql('UPDATE subscription SET channels = $1 WHERE id = ANY ($2)', [
      JSON.stringify([mebibytes(1.5), then]),
      [...now, ...others],
    ]);
    // An entry of an older version does not say how long it is, and takes less where it is kept.
    for (const [subscription, isMeasured] of [
      [large, true],
      [old, false],
    ] as const) {
      await change(subscription, [mebibytes(1), then], isMeasured);
      for (let count = 0; count < 4; count++) await change(subscription, [mebibytes(1)], isMeasured);
    }
    // The first of its changes alone is too long.
    for (const first of [[mebibytes(3), then], []]) await change(huge, first);
    // Of another one nothing but such a change says that it was about the channel.
    await sql("UPDATE subscription SET channels = '[]' WHERE id = $1", [others[0]]);
    await change(others[0]!, [mebibytes(3), { channel, filters: { kind: 'no' } }]);
    const pages: Explanation[][] = [];
    let cursor: string | null = null;
    do {
      const page: Page = await explain(id, { limit: '500', ...(cursor !== null && { cursor }) });
      pages.push(page.explanations);
      cursor = page.nextCursor;
    } while (cursor !== null);
    const told = pages.flat();
    expect(told.map(({ subscriptionId }) => subscriptionId)).toEqual([...met.toSorted(), ...others.toSorted()]);
    const parts = pages.flatMap((page) => [
      page.filter((each) => each.delivery !== null),
      page.filter((each) => each.delivery === null),
    ]);
    for (const part of parts.filter(({ length }) => length > 1)) {
      const [read] = await sql<{ length: string }>(
        `SELECT sum(octet_length(channels::text)) + coalesce(sum(changed.length), 0) AS length
         FROM subscription s LEFT JOIN LATERAL (
           SELECT sum(octet_length(before::text)) AS length FROM audit_entry
           WHERE subject = 'subscription/' || s.id AND at > now() + interval '30 minutes'
         ) AS changed ON true
         WHERE id = ANY ($1)`,
        [part.map(({ subscriptionId }) => subscriptionId)],
      );
      expect(Number(read!.length)).toBeLessThanOrEqual(mostBytes);
    }
    for (const subscription of [large, old, huge])
      expect(told.find(({ subscriptionId }) => subscriptionId === subscription)).toMatchObject({
        verdict: 'matched',
        entries: [{ number: 2, isMet: true }],
        catalogue: 'as-far-as-known',
        catalogueReason:
          'The changes noted since are too large to read all of them; only the first ones were looked at.',
      });
    expect(told.find(({ subscriptionId }) => subscriptionId === others[0])).toMatchObject({
      verdict: 'filters-not-met',
      entries: [{ number: 2 }],
      catalogue: 'as-of-acceptance',
    });
  });

  it('is asked of no connection of those that accept and deliver', async () => {
    const asked = vi.spyOn(postgres, 'query');
    onTestFinished(() => asked.mockRestore());
    const id = await publish();
    asked.mockClear();
    expect((await explain(id)).explanations).toEqual([]);
    expect(await admin.get(`/admin/v1/notifications/${id}`)).toMatchObject({ status: 200 });
    expect(asked.mock.calls.map(([{ name }]) => name)).not.toContain('ledger-days');
  });

  it('is told to be uncertain where the audit log does not reach back', async () => {
    const [subscription, other] = [await subscribe({ kind: 'a' }), await subscribe({ kind: 'z' })];
    const id = await publish();
    await sql("UPDATE notification SET accepted_at = now() - interval '1 year' WHERE id = $1", [id]);
    await sql("UPDATE subscription SET created_at = now() - interval '2 years' WHERE id = $1", [subscription]);
    expect(await explainOne(id, subscription)).toMatchObject({
      verdict: 'matched',
      catalogue: 'as-far-as-known',
      catalogueReason: expect.stringMatching(/^The audit log begins at /),
    });
    expect(await explainOne(id, other)).toMatchObject({ verdict: 'created-later', catalogue: 'as-far-as-known' });
  });

  it('is not known where there is no such notification, or no such subscription', async () => {
    const id = await publish();
    const missing = `/admin/v1/notifications/${randomUUID()}/explanations`;
    expect((await admin.get(missing)).status).toBe(404);
    expect((await admin.get(`/admin/v1/notifications/${id}/explanations?subscription=${randomUUID()}`)).status).toBe(
      404,
    );
    const wrong = await admin.get(`/admin/v1/notifications/${id}/explanations?cursor=f1`);
    expect(wrong).toMatchObject({ status: 400, json: { invalidParams: [{ name: 'cursor', code: 'invalid' }] } });
  });
});

describe('where its delivery is', () => {
  beforeEach(() => onNewChannel());

  it('is told with what holds it', async () => {
    const subscription = await subscribe({});
    const id = await publish();
    await admin.post(`/admin/v1/subscriptions/${subscription}/pause`);
    await setState(id, subscription, "state = 'held', held_for = 'paused', held_since = now(), next_at = NULL");
    expect(await explainOne(id, subscription)).toMatchObject({
      delivery: { state: 'held', heldFor: 'paused' },
      text: expect.stringContaining('an operator paused its subscription at 2'),
    });
    await sql("INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, 'HTTP 503', 9, now())", [
      callbackUrl,
    ]);
    await setState(id, subscription, "held_for = 'endpoint-parked'");
    expect(await explainOne(id, subscription)).toMatchObject({
      delivery: { heldFor: 'endpoint-parked', endpoint: { address: callbackUrl, reason: 'HTTP 503' } },
      text: expect.stringContaining(`the circuit breaker of ${callbackUrl} is open since 2`),
    });
    await setState(id, subscription, "state = 'failed', attempts = 3, last_error = 'HTTP 500', ended_at = now()");
    expect(await explainOne(id, subscription)).toMatchObject({
      delivery: { state: 'failed', heldFor: null, endpoint: null },
      text: expect.stringContaining('after 3 calls (HTTP 500). It is kept as a dead letter.'),
    });
  });

  it('is told with what it is behind, where its subscription keeps order', async () => {
    const subscription = await subscribe({});
    await admin.patch(`/admin/v1/subscriptions/${subscription}`, { ordering: 'per-object' });
    const hoofdObject = 'https://cases.example/ordered';
    const [first, second, third] = [
      await publish({ hoofdObject }),
      await publish({ hoofdObject }),
      await publish({ hoofdObject }),
    ];
    expect(await explainOne(second!, subscription)).toMatchObject({
      delivery: { heldFor: 'order', behind: first },
      text: expect.stringContaining(`behind ${first} about the same object, and nothing else is before it in line.`),
    });
    expect((await explainOne(third!, subscription)).text).toContain('and 1 others are before it in line.');
    const forecast = await dryRun({ hoofdObject }, { subscription });
    expect(forecast.explanations).toMatchObject([{ fate: 'in-line', heldFor: 'order', behind: first }]);
    expect((await dryRun({}, { subscription })).explanations).toMatchObject([{ fate: 'sent' }]);
  });
});

describe('a notification that was not sent', () => {
  let [met, paused, notMet]: string[] = [];
  beforeAll(async () => {
    await onNewChannel({ deduplication: { fields: ['hoofdObject'] }, maxAgeSeconds: 3600 });
    [met, paused, notMet] = [await subscribe({ kind: 'a' }), await subscribe({}), await subscribe({ kind: 'z' })];
    await admin.post(`/admin/v1/subscriptions/${paused}/pause`);
  });
  const now = () => ({ aanmaakdatum: new Date(Date.now() - 60_000).toISOString() });
  const written = () =>
    sql(
      `SELECT (SELECT count(*) FROM notification) AS n, (SELECT count(*) FROM delivery) AS d,
         (SELECT count(*) FROM once_key) AS k, (SELECT count(*) FROM audit_entry) AS a, (SELECT count(*) FROM turn) AS t,
         (SELECT count(*) FROM held_subscription) AS h, (SELECT version FROM catalogue) AS v`,
    );

  it('is explained as if it were published now, those first who would get it, and nothing is written', async () => {
    const before = await written();
    const { explanations, ...all } = await dryRun(now());
    expect(all).toMatchObject({ matchedCount: 2, subscribedCount: 3, duplicateOf: null, isTooOld: false });
    expect(JSON.parse(all.body)).toMatchObject({ kanaal: channel, kenmerken: { kind: 'a', region: 'north' } });
    const byId = Object.fromEntries(explanations.map((each) => [each.subscriptionId, each]));
    expect(byId[met!]).toMatchObject({ isMatched: true, fate: 'sent', text: expect.stringMatching(/sent at once\.$/) });
    expect(byId[paused!]).toMatchObject({ isMatched: true, fate: 'held', heldFor: 'paused' });
    expect(explanations[2]).toMatchObject({ subscriptionId: notMet, isMatched: false, fate: 'none' });
    expect(await written()).toEqual(before);
  });

  it('is told to be a duplicate, or too old', async () => {
    const hoofdObject = `https://cases.example/${randomUUID()}`;
    const first = await publish({ hoofdObject, ...now() });
    const repeated = await dryRun({ hoofdObject, ...now() });
    expect(repeated).toMatchObject({ duplicateOf: first, matchedCount: 2 });
    expect(repeated.explanations.map(({ fate }) => fate)).toEqual(['duplicate', 'duplicate', 'none']);
    const old = await dryRun({ aanmaakdatum: '2025-01-01T10:00:00Z' });
    expect(old).toMatchObject({ isTooOld: true });
    expect(old.explanations.map(({ fate }) => fate)).toEqual(['expired', 'expired', 'none']);
  });

  it('is refused exactly as its publication is', async () => {
    for (const wrong of [{ kanaal: 'nowhere' }, { hoofdObject: 'x', actie: '' }, { kenmerken: { other: 'x' } }]) {
      const body = notification(wrong);
      const [explained, published] = [
        await admin.post('/admin/v1/explain', body),
        await admin.api.post('/notificaties', body),
      ];
      expect(explained.status).toBe(400);
      expect(explained.json.invalidParams).toEqual(published.json.invalidParams);
    }
    expect((await admin.post(`/admin/v1/explain?subscription=${randomUUID()}`, notification(now()))).status).toBe(404);
  });
});

describe('what other filters would get', () => {
  beforeEach(() => onNewChannel());

  const preview = async (...filters: Record<string, string>[]) =>
    (
      await admin.post('/admin/v1/subscriptions/preview', {
        channels: filters.map((each) => ({ channel, filters: each })),
      })
    ).json;

  it('is counted over the last hour as notifications are matched, with the newest as a sample', async () => {
    const old = await publish();
    await sql('UPDATE notification SET id = $2 WHERE id = $1', [old, lowestIdAt(Date.now() - 3_700_000)]);
    for (let nr = 0; nr < 12; nr++) await publish({ kenmerken: { kind: nr % 4 === 0 ? 'b' : 'a', region: `r${nr}` } });
    const all = await preview({});
    expect(all).toMatchObject({ matched: 12, looked: 12, notRead: 0, isWholeHour: true });
    expect(all.sample).toHaveLength(10);
    expect(all.sample).toMatchObject([
      { channel, characteristics: { kind: 'a', region: 'r11' } },
      ...Array(9).fill({ channel }),
    ]);
    expect(await preview({ kind: 'b' })).toMatchObject({ matched: 3, looked: 12 });
    expect(await preview({ kind: 'b', region: 'r4' }, { region: 'r1' })).toMatchObject({ matched: 2 });
    expect(await preview({ Kind: '*' })).toMatchObject({ matched: 12 });
    expect(await preview({ kind: 'none' })).toMatchObject({ matched: 0, sample: [] });
    expect(Date.parse(all.to as string) - Date.parse(all.from as string)).toBe(3_600_000);
  });

  it('counts none whose body is erased, or larger than it reads', async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, nr) => [`name${nr}`, 'x'.repeat(900)]));
    const [erased] = [await publish(), await publish({ kenmerken: { kind: 'a', region: 'north', ...many } })];
    await sql('UPDATE notification SET body = NULL WHERE id = $1', [erased]);
    expect(await preview({})).toMatchObject({ matched: 0, looked: 2, notRead: 2 });
  });

  it('is asked of filters that a subscription could have', async () => {
    const path = '/admin/v1/subscriptions/preview';
    const codesOf = async (channels: object[]) =>
      (await admin.post(path, { channels })).json.invalidParams.map(({ name, code }) => `${name} ${code}`);
    expect(await codesOf([])).toEqual(['channels empty']);
    const wrong = [{ channel: '' }, ...Array.from({ length: 200_000 }, () => ({}))];
    expect(await codesOf(wrong)).toEqual(['channels max_length']);
    expect(await codesOf(wrong.slice(0, 500))).toHaveLength(50);
    expect(await codesOf([{ channel: 'nowhere' }])).toEqual(['channels.0.channel kanaal_naam']);
    expect(await codesOf([{ channel, filters: { other: 'x' } }])).toEqual([
      'channels.0.filters inconsistent-abonnement-filters',
    ]);
  });
});

describe('of many subscriptions, a page', () => {
  const count = 24;
  let ids: { met: string[]; all: string[] };
  beforeAll(async () => {
    await onNewChannel();
    const all = await Promise.all(
      Array.from({ length: count }, (_, nr) => subscribe({ kind: nr % 3 === 0 ? 'a' : `z${nr}` })),
    );
    ids = { met: all.filter((_, nr) => nr % 3 === 0).toSorted(), all: all.toSorted() };
  });

  const inOrder = () => [...ids.met, ...ids.all.filter((id) => !ids.met.includes(id))];

  async function allPages(page: (query: Record<string, string>) => Promise<Page>, limit: number): Promise<string[]> {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query: Record<string, string> = { limit: String(limit), ...(cursor === '' ? {} : { cursor }) };
      const { explanations, nextCursor } = await page(query);
      expect(explanations.length).toBeLessThanOrEqual(limit);
      found.push(...explanations.map(({ subscriptionId }) => subscriptionId));
      cursor = nextCursor;
    }
    return found;
  }

  it.each([1, 5, 8, 100])('has at most %i, and all of them come once, those who get it first', async (limit) => {
    const id = await publish();
    expect(await allPages((query) => explain(id, query), limit)).toEqual(inOrder());
    expect(await allPages((query) => dryRun({}, query), limit)).toEqual(inOrder());
  });

  it('is found in a limited range', async () => {
    const reader = admin.api.app.get(ExplanationReader, { strict: false });
    const found = (await reader.findNotification(await publish()))!;
    const seen: string[] = [];
    let pages = 0;
    for (let next: Parameters<typeof reader.list>[1] | undefined = { part: 'others', after: lowestId }; next; pages++) {
      const page = await reader.list(found, next, 10, 3);
      seen.push(...page.explanations.map(({ subscriptionId }) => subscriptionId));
      next = page.next;
    }
    expect(seen).toEqual(inOrder().slice(ids.met.length));
    const [all] = await sql<{ n: string }>('SELECT count(*) AS n FROM subscription');
    expect(pages).toBeGreaterThanOrEqual(Math.floor(Number(all!.n) / 3));
  });
});
