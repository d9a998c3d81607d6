import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { request as rawRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { retryDeadlocks } from '../../src/infra/postgres/retry-deadlocks.js';
import { Api, type ApiAnswer } from '../support/api.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';

let database: TestDatabase;
/** Two processes over one database; most tests use the first. */
let api: Api;
let otherApi: Api;
let receiver: Receiver;
let kanaal: string;

beforeAll(async () => {
  [database, receiver] = await Promise.all([createDatabase(), Receiver.start()]);
  const settings = { DATABASE_URL: database.url, DATABASE_POOL_SIZE: '4', DISPATCH_INTERVAL_MS: '100' };
  api = await Api.start(settings);
  otherApi = await Api.start(settings);
  kanaal = randomUUID();
  await api.post('/kanaal', { naam: kanaal });
  await api.post('/abonnement', { callbackUrl: receiver.url, auth: 'Bearer x', kanalen: [{ naam: kanaal }] });
});

afterAll(async () => {
  await Promise.all([api.close(), otherApi.close(), receiver.stop()]);
  await database.drop();
});

const notification = (more: object = {}) => ({
  kanaal,
  hoofdObject: 'http://openzaak:8000/zaken/1',
  resource: 'status',
  resourceUrl: `http://openzaak:8000/statussen/${randomUUID()}`,
  actie: 'create',
  aanmaakdatum: '2025-01-01T10:00:00Z',
  ...more,
});

async function channelWithFilter(filter: string): Promise<{ naam: string; url: string }> {
  const naam = randomUUID();
  return { naam, url: (await api.post('/kanaal', { naam, filters: [filter] })).json.url };
}

const idOf = ({ headers }: ApiAnswer) => headers.get('notification-id')!;
const receivedOf = (id: string) => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);
const arrived = (id: string) => eventually(() => receivedOf(id)[0], `${id} to arrive`);
const soon = (ms: number) => new Date(Date.now() + ms).toISOString();
const farAhead = () => soon(3_600_000);

async function statesOf(id: string): Promise<string[]> {
  const rows: { state: string }[] = await api.app
    .get(Postgres)
    .dataSource.query('SELECT state FROM delivery WHERE notification_id = $1', [id]);
  return rows.map(({ state }) => state);
}

describe('Idempotency-Key', () => {
  const publish = (
    key: string,
    body: object,
    { to = api, ...more }: { to?: Api; token?: string; after?: string } = {},
  ) =>
    to.post('/notificaties', body, {
      token: more.token,
      headers: { 'idempotency-key': key, ...(more.after && { 'deliver-after': more.after }) },
    });

  it('publishes once, and answers a repeated request as the first, marked', async () => {
    const [key, body] = [randomUUID(), notification()];
    const [first, second] = [await publish(key, body), await publish(key, body, { to: otherApi })];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.text).toBe(first.text);
    expect(idOf(second)).toBe(idOf(first));
    expect([first, second].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    await arrived(idOf(first));
    expect(receivedOf(idOf(first))).toHaveLength(1);
  });

  it('is the same key quoted and bare, and the same request in another layout', async () => {
    const [key, rest] = [randomUUID(), notification()];
    const first = await publish(`"${key}"`, { ...rest, kenmerken: { object_type: 'a' } });
    const second = await publish(key, { ...rest, hoofd_object: rest.hoofdObject, kenmerken: { objectType: 'a' } });
    const third = await publish(key, { kenmerken: { objectType: 'a' }, ...rest });
    expect([second.status, idOf(second), third.status, idOf(third)]).toEqual([201, idOf(first), 201, idOf(first)]);
  });

  it.each(['', '""', '"a', 'a\tb', '"a"b"', 'x'.repeat(256)])('refuses %j', async (key) => {
    const { status, json } = await publish(key, notification());
    expect([status, json.code]).toEqual([400, 'idempotency-key-invalid']);
  });

  it('is refused when it comes twice', async () => {
    const { status, code } = await new Promise<{ status: number; code: string }>((resolve, reject) => {
      const call = rawRequest(`${api.base}/notificaties`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${api.superuserToken}`,
          'content-type': 'application/json',
          'idempotency-key': ['one', 'two'],
        },
      });
      call.on('error', reject).on('response', (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () =>
          resolve({ status: response.statusCode!, code: (JSON.parse(text) as { code: string }).code }),
        );
      });
      call.end(JSON.stringify(notification()));
    });
    expect([status, code]).toEqual([400, 'idempotency-key-invalid']);
  });

  it.each(['x', 'x'.repeat(255), 'with spaces, and "quotes"', '"a \\"b\\" \\\\ c"'])('accepts %j', async (key) => {
    expect((await publish(key, notification({ kanaal }))).status).toBe(201);
  });

  it('is answered as the first time where the filters of its channel have changed since', async () => {
    const [key, channel] = [randomUUID(), await channelWithFilter('kind')];
    const body = notification({ kanaal: channel.naam, kenmerken: { kind: 'permit' } });
    const first = await publish(key, body);
    await api.put(channel.url, { naam: channel.naam, filters: ['other'] });
    for (const to of [api, otherApi]) {
      const again = await publish(key, body, { to });
      expect([again.status, again.text, idOf(again)]).toEqual([201, first.text, idOf(first)]);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    }
    const others: [string, object][] = [
      [randomUUID(), body],
      [key, { ...body, actie: 'update' }],
    ];
    for (const [otherKey, other] of others) {
      const { status, json } = await publish(otherKey, other);
      expect([status, json.invalidParams[0]!.code]).toEqual([400, 'kenmerken_inconsistent']);
    }
    await api.put(channel.url, { naam: channel.naam, filters: ['kind'] });
    expect((await publish(key, { ...body, actie: 'update' })).status).toBe(422);
  });

  it('is answered as the first time where its channel was removed since, a key of a PUT as well', async () => {
    const [key, channel] = [randomUUID(), await channelWithFilter('kind')];
    const body = notification({ kanaal: channel.naam, kenmerken: { kind: 'permit' } });
    const put = () => api.put(`/notificaties/${key}`, body);
    const firsts = [await publish(key, body), await put()];
    const removed = await api.delete(`${api.origin}/admin/v1/channels/${lastPart(channel.url)}`);
    expect(removed.status).toBe(204);
    await otherApi.get('/kanaal'); // it looks for changes first
    const seconds = [await publish(key, body, { to: otherApi }), await put()];
    expect(seconds.map(({ status }) => status)).toEqual([201, 200]);
    expect(seconds.map(({ text }) => text)).toEqual(firsts.map(({ text }) => text));
    expect(seconds.map(idOf)).toEqual(firsts.map(idOf));
    expect(seconds.map(({ headers }) => headers.get('idempotent-replayed'))).toEqual(['true', 'true']);
    for (const refused of [await publish(randomUUID(), body), await publish(key, { ...body, actie: 'update' })])
      expect([refused.status, refused.json.invalidParams[0]!.code]).toEqual([400, 'message_kanaal']);
  });

  it.each([
    ['COMMIT', 201, 'true', 1],
    ['ROLLBACK', 400, null, 0],
  ])(
    'waits where another process is just storing the first request, and the filters have changed since (%s)',
    async (end, status, isReplayed, left) => {
      const [key, channel] = [randomUUID(), await channelWithFilter('kind')];
      const body = notification({ kanaal: channel.naam, kenmerken: { kind: 'permit' } });
      await publish(key, body);
      await api.put(channel.url, { naam: channel.naam, filters: ['other'] });
      await otherApi.get('/kanaal'); // it looks for changes first
      const client = new pg.Client(database.url);
      await client.connect();
      const { rows } = await client.query('DELETE FROM once_key WHERE key = $1 RETURNING once_key::text AS row', [key]);
      await client.query('BEGIN');
      await client.query('INSERT INTO once_key SELECT ($1::once_key).*', [rows[0].row]);
      const answer = publish(key, body, { to: otherApi });
      const waits = `SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted
        AND transactionid = pg_current_xact_id()::xid`;
      await eventually(async () => (await client.query(waits)).rowCount === 1, 'it to wait for the first request');
      await client.query(end);
      expect([(await answer).status, (await answer).headers.get('idempotent-replayed')]).toEqual([status, isReplayed]);
      const { rowCount } = await client.query('SELECT 1 FROM once_key WHERE key = $1', [key]);
      expect(rowCount).toBe(left);
      await client.end();
    },
  );

  it('is refused with other content, and with another time', async () => {
    const [key, body, after] = [randomUUID(), notification(), farAhead()];
    const first = await publish(key, body, { after });
    for (const answer of [
      await publish(key, { ...body, actie: 'update' }, { after }),
      await publish(key, body),
      await publish(key, body, { after: soon(7_200_000) }),
    ]) {
      expect([answer.status, answer.json.code]).toEqual([422, 'idempotency-key-reused']);
    }
    expect(idOf(await publish(key, body, { after }))).toBe(idOf(first));
  });

  it('is the same request also when the time it asked for has passed meanwhile', async () => {
    const [key, body, after] = [randomUUID(), notification(), soon(300)];
    const first = await publish(key, body, { after });
    await arrived(idOf(first));
    const second = await publish(key, body, { after });
    expect([second.status, idOf(second)]).toEqual([201, idOf(first)]);
  });

  it('belongs to the application', async () => {
    const [key, body] = [randomUUID(), notification()];
    const [one, other] = [
      await api.tokenWith('notificaties.publiceren'),
      await api.tokenWith('notificaties.publiceren'),
    ];
    const [first, second] = [await publish(key, body, { token: one }), await publish(key, body, { token: other })];
    expect(second.headers.get('idempotent-replayed')).toBeNull();
    expect(idOf(second)).not.toBe(idOf(first));
  });

  it('can be used again when its time is over', async () => {
    const [key, body] = [randomUUID(), notification()];
    const first = await publish(key, body);
    await api.app.get(Postgres).dataSource.query('UPDATE once_key SET expires_at = now() WHERE key = $1', [key]);
    const second = await publish(key, { ...body, actie: 'update' });
    expect([second.status, idOf(second) === idOf(first)]).toEqual([201, false]);
  });

  it('is answered with 409 while the first request is still being stored', async () => {
    const [key, body] = [randomUUID(), notification()];
    const calls: Promise<ApiAnswer>[] = [];
    const answer = await api.app.get(Postgres).dataSource.transaction(async (manager) => {
      await manager.query('LOCK TABLE once_key IN ACCESS EXCLUSIVE MODE');
      // They travel on connections of their own: either may be the one that comes first.
      calls.push(publish(key, body), publish(key, body));
      return Promise.race(calls);
    });
    expect([answer.status, answer.json.code]).toEqual([409, 'idempotency-key-in-flight']);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect((await Promise.all(calls)).map(({ status }) => status).sort()).toEqual([201, 409]);
    expect((await publish(key, body)).headers.get('idempotent-replayed')).toBe('true');
  });

  it('is free again when the first request could not be stored', async () => {
    const [key, body] = [randomUUID(), notification()];
    const { dataSource } = api.app.get(Postgres);
    // The deliveries of earlier tests may be settled at this moment.
    await retryDeadlocks(() =>
      dataSource.query(`ALTER TABLE delivery ADD CONSTRAINT trouble CHECK (state = 'delivered') NOT VALID`),
    );
    const refused = await publish(key, body);
    await retryDeadlocks(() => dataSource.query('ALTER TABLE delivery DROP CONSTRAINT trouble'));
    expect(refused.status).toBeGreaterThanOrEqual(400);
    const accepted = await publish(key, body);
    expect([accepted.status, accepted.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });

  it('makes one notification of a thousand concurrent requests over two processes', async () => {
    const [key, body] = [randomUUID(), notification()];
    const untilAnswered = async (to: Api): Promise<ApiAnswer> => {
      for (;;) {
        const answer = await publish(key, body, { to });
        if (answer.status !== 409) return answer;
        await pause(Math.random() * 200); // a client in a hurry: Retry-After says a second
      }
    };
    const answers = await Promise.all(Array.from({ length: 1000 }, (_, nr) => untilAnswered(nr % 2 ? otherApi : api)));
    expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null)).toHaveLength(1);
    await arrived(idOf(answers[0]!));
    expect(receiver.notifications.filter(({ text }) => text === answers[0]!.text)).toHaveLength(1);
  });
});

describe('PUT with a key of the publisher', () => {
  const put = (key: string, body: object, after?: string, token?: string) =>
    api.put(`/notificaties/${encodeURIComponent(key)}`, body, {
      token,
      headers: after === undefined ? {} : { 'deliver-after': after },
    });

  it('creates with 201, and changes nothing with 200 when it is repeated', async () => {
    const [key, body] = [randomUUID(), notification()];
    const [first, second] = [await put(key, body), await put(key, body)];
    expect([first.status, second.status]).toEqual([201, 200]);
    expect([idOf(second), second.text]).toEqual([idOf(first), first.text]);
    await arrived(idOf(first));
    expect(receivedOf(idOf(first))).toHaveLength(1);
  });

  it('answers 200 for the same content also where the filters of its channel have changed since', async () => {
    const [key, channel] = [randomUUID(), await channelWithFilter('kind')];
    const body = notification({ kanaal: channel.naam, kenmerken: { kind: 'permit' } });
    const first = await put(key, body);
    await api.put(channel.url, { naam: channel.naam, filters: ['other'] });
    const again = await put(key, body);
    expect([again.status, again.text, idOf(again)]).toEqual([200, first.text, idOf(first)]);
    expect((await put(key, { ...body, actie: 'update' })).status).toBe(400);
  });

  it('refuses other content once it was sent', async () => {
    const [key, body] = [randomUUID(), notification()];
    await put(key, body);
    const { status, json } = await put(key, { ...body, actie: 'update' });
    expect([status, json.code]).toEqual([409, 'notification-sent']);
    expect((await put(key, body)).status).toBe(200);
  });

  it('replaces the content of a notification that is still to be sent, and only the new one arrives', async () => {
    const [key, body] = [randomUUID(), notification()];
    const first = await put(key, body, farAhead());
    expect([first.status, await statesOf(idOf(first))]).toEqual([201, ['waiting']]);
    const second = await put(key, { ...body, actie: 'update' }, farAhead());
    expect([second.status, idOf(second), second.json.actie]).toEqual([200, idOf(first), 'update']);
    const third = await put(key, { ...body, actie: 'destroy' });
    expect([third.status, idOf(third)]).toEqual([200, idOf(first)]);
    expect((await arrived(idOf(first))).text).toBe(third.text);
    const late = await put(key, body, farAhead());
    expect([late.status, late.json.code]).toEqual([409, 'notification-sent']);
    expect(receivedOf(idOf(first))).toHaveLength(1);
  });

  it('keeps its key as long as it waits, and the time it is remembered after that', async () => {
    const key = randomUUID();
    await put(key, notification(), soon(30 * 86_400_000));
    const [row] = await api.app
      .get(Postgres)
      .dataSource.query<{ days: number }[]>(
        `SELECT extract(epoch FROM expires_at - now())::float8 / 86400 AS days FROM once_key WHERE key = $1`,
        [key],
      );
    expect(row!.days).toBeGreaterThan(36.9);
  });

  it('keeps keys of applications, and of POST, apart', async () => {
    const [key, body] = [randomUUID(), notification()];
    const token = await api.tokenWith('notificaties.publiceren');
    const ids = [
      idOf(await put(key, body, farAhead())),
      idOf(await put(key, body, farAhead(), token)),
      idOf(await api.post('/notificaties', body, { headers: { 'idempotency-key': key } })),
    ];
    expect(new Set(ids).size).toBe(3);
  });

  it.each(['with spaces/and/slashes', '%', '"quoted"', 'x'.repeat(255), '%'.repeat(255)])(
    'accepts the key %j',
    async (key) => {
      const body = notification();
      expect([(await put(key, body)).status, (await put(key, body)).status]).toEqual([201, 200]);
    },
  );

  it.each(['x'.repeat(256), 'é', ' ', 'a\nb'])('refuses the key %j', async (key) => {
    const { status, json } = await put(key, notification());
    expect([status, json.invalidParams[0]]).toMatchObject([400, { name: 'key', code: 'invalid' }]);
  });

  it('is either replaced or sent as it was, whenever the time comes', async () => {
    await Promise.all(
      Array.from({ length: 30 }, async (_, nr) => {
        const [key, body] = [randomUUID(), notification()];
        const at = Date.now() + 400;
        const first = await put(key, body, new Date(at).toISOString());
        // Around the time at which it is due: some before, some after.
        await eventually(() => Date.now() > at - 60 + nr * 6, 'the time to be near', { everyMs: 1 });
        const second = await put(key, { ...body, actie: 'update' });
        expect([200, 409]).toContain(second.status);
        const received = await arrived(idOf(first));
        expect(received.text).toBe(second.status === 200 ? second.text : first.text);
        await eventually(async () => (await statesOf(idOf(first))).join() === 'delivered', 'it to be delivered');
        expect(receivedOf(idOf(first))).toHaveLength(1);
      }),
    );
  });
});

describe('Deliver-After', () => {
  const publish = (after: string, body: object = notification()) =>
    api.post('/notificaties', body, { headers: { 'deliver-after': after } });

  it('sends at that time or later, once, with two dispatchers running', async () => {
    const at = Date.now() + 700;
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => idOf(await publish(new Date(at).toISOString()))),
    );
    const received = await Promise.all(ids.map(arrived));
    for (const request of received) expect(request.at).toBeGreaterThanOrEqual(at);
    await Promise.all(
      ids.map((id) => eventually(async () => (await statesOf(id)).join() === 'delivered', 'it to be delivered')),
    );
    for (const id of ids) expect(receivedOf(id)).toHaveLength(1);
  });

  it('accepts any offset, and sends at once if the time has passed', async () => {
    await arrived(idOf(await publish('2025-01-01T00:00:00Z')));
    const at = new Date(Date.now() + 7_200_000).toISOString().slice(0, 19);
    expect(await statesOf(idOf(await publish(`${at}-02:00`)))).toEqual(['waiting']);
    await arrived(idOf(await publish(`${at}+12:00`)));
  });

  it.each([
    '',
    'tomorrow',
    '2026-13-01T00:00:00Z',
    '2026-12-01',
    '2026-12-01T10:00:00',
    '1800000000',
    '9999-01-01T00:00:00Z',
  ])('refuses %j', async (after) => {
    const { status, json } = await publish(after);
    expect([status, json.invalidParams[0]]).toMatchObject([400, { name: 'Deliver-After', code: 'invalid' }]);
  });

  it('is sent at once when an operator retries it', async () => {
    const id = idOf(await publish(farAhead()));
    const { list } = await api.get('/abonnement');
    const subscription = list
      .find(({ kanalen }) => kanalen.some(({ naam }) => naam === kanaal))!
      .url.split('/')
      .at(-1)!;
    await api.post(`${api.origin}/admin/v1/deliveries/${id}/${subscription}/retry`, undefined);
    await arrived(id);
    expect(receivedOf(id)).toHaveLength(1);
  });
});
