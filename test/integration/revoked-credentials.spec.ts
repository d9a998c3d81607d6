import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { secretPlace, type Application } from '../../src/auth/application.js';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import { scopes } from '../../src/auth/scopes.js';
import { TokenWatch } from '../../src/auth/token-watch.service.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { Arrivals } from '../../src/pulling/arrivals.service.js';
import { PullService } from '../../src/pulling/pull.service.js';
import { PublishService } from '../../src/publishing/publish.service.js';
import { ReplaceScheduledService } from '../../src/publishing/replace-scheduled.service.js';
import { keyRingOf, newEntry } from '../../src/secrets/key-ring.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { Api, type ApiAnswer } from '../support/api.js';
import { Browser } from '../support/browser.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { signToken } from '../support/tokens.js';

interface Client {
  id: string;
  clientId: string;
  secret: string;
  token: string;
}

const revocations: { how: string; revoke: (at: Api, client: Client) => Promise<ApiAnswer> }[] = [
  { how: 'deleted', revoke: (at, { id }) => at.delete(`${at.origin}/admin/v1/applications/${id}`) },
  {
    how: 'given another secret',
    revoke: (at, { id }) => at.call('POST', `${at.origin}/admin/v1/applications/${id}/rotate-secret`),
  },
  {
    how: 'left without rights',
    revoke: (at, { id }) => at.patch(`${at.origin}/admin/v1/applications/${id}`, { isSuperuser: false, scopes: [] }),
  },
];

/** Two processes, of which the second never looks by itself whether the catalogue has changed. */
describe('a process whose catalogue in memory is behind', () => {
  let database: TestDatabase;
  let first: Api;
  let second: Api;

  beforeAll(async () => {
    database = await createDatabase();
    const settings = { DATABASE_URL: database.url, ROLES: 'api', TEST_CALLBACK_AUTH: 'false' };
    first = await Api.start(settings);
    second = await Api.start(settings);
    second.app.get(Catalogue).onModuleDestroy(); // ends its poll
  });
  afterAll(async () => {
    await Promise.all([first.close(), second.close()]);
    await database.drop();
  });

  const sql = <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    first.app.get(Postgres).dataSource.query(text, values);
  const isAdmitted = async ({ token }: Client) => (await second.get('/kanaal', { token })).status === 200;

  /** A client whose token is in use at the second process. */
  async function newClient(rights: { isSuperuser: boolean; scopes?: string[] }): Promise<Client> {
    const [clientId, secret] = [randomUUID(), randomUUID()];
    const input = { clientId, secret, label: clientId, scopes: [scopes.publish], ...rights };
    const { application } = await first.app.get(ApplicationsService).create(input);
    const client = { id: application.id, clientId, secret, token: signToken({ clientId, secret }) };
    expect(await isAdmitted(client)).toBe(true);
    return client;
  }

  const newChannel = async () => {
    const naam = `channel-${randomUUID()}`;
    expect((await second.post('/kanaal', { naam })).status).toBe(201);
    return naam;
  };
  const notificationTo = (kanaal: string, resource = 'case') => {
    const url = 'https://cases.example.org/1';
    const times = { aanmaakdatum: new Date().toISOString() };
    return { kanaal, hoofdObject: url, resource, resourceUrl: url, actie: 'create', kenmerken: {}, ...times };
  };
  const publishedBy = ({ clientId }: Client) =>
    sql<{ body: string }>('SELECT body FROM notification WHERE publisher = $1', [clientId]);
  const code = ({ status, json }: ApiAnswer) => [status, json.code];

  /** @returns whether the stream of events at the second process has ended */
  async function listensWith({ token }: Client): Promise<() => boolean> {
    const response = await fetch(`${second.origin}/admin/v1/events`, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(200);
    let hasEnded = false;
    void response.text().then(() => (hasEnded = true));
    return () => hasEnded;
  }

  /** A request to fetch that waits at the second process, for an abonnement of this client. */
  async function waitsWith(client: Client): Promise<{ answer: Promise<ApiAnswer>; notify: () => Promise<ApiAnswer> }> {
    const { token } = client;
    const { url, naam } = await subscriptionOf(client);
    const arrivals = second.app.get(Arrivals, { strict: false });
    const answer = second.get(`${url}/notificaties?wait=30`, { token });
    await eventually(() => Reflect.get(arrivals, 'count') === 1, 'the request to wait');
    expect(isWatched(client)).toBe(true);
    return { answer, notify: () => first.post('/notificaties', notificationTo(naam)) };
  }

  const isWatched = ({ clientId }: Client) =>
    [...(Reflect.get(second.app.get(TokenWatch), 'watched') as Set<{ application: Application }>)].some(
      ({ application }) => application.clientId === clientId,
    );

  async function subscriptionOf({ clientId }: Client): Promise<{ url: string; naam: string }> {
    const naam = await newChannel();
    const input = {
      callbackUrl: 'https://receiver.example.org/',
      auth: 'x',
      channels: [{ channel: naam, filters: {} }],
    };
    const { subscription } = await second.app.get(SubscriptionsService).create(clientId, input);
    return { url: `/abonnement/${subscription.id}`, naam };
  }

  async function signIn({ clientId, secret }: Client): Promise<Browser> {
    const browser = new Browser();
    const { status } = await browser.change('POST', `${second.origin}/console/session`, { clientId, secret });
    expect(status).toBe(200);
    return browser;
  }

  describe.each(revocations)('carries out nothing for an application that was $how', ({ revoke }) => {
    it('and makes no other superuser for it', async () => {
      const client = await newClient({ isSuperuser: true });
      expect((await revoke(first, client)).status).toBeLessThan(300);
      const clientId = randomUUID();
      const body = { clientId, label: 'Outlives it', isSuperuser: true };
      const { status } = await second.post(`${second.origin}/admin/v1/applications`, body, { token: client.token });
      expect(status).toBe(403);
      expect(await sql('SELECT FROM application WHERE client_id = $1', [clientId])).toEqual([]);
    });

    it('and gives no command that is no change of the catalogue', async () => {
      const client = await newClient({ isSuperuser: true });
      await revoke(first, client);
      const path = `${second.origin}/admin/v1/deliveries/${randomUUID()}/${randomUUID()}/cancel`;
      expect((await second.call('POST', path, { token: client.token })).status).toBe(403);
    });

    it('and ends its stream of events as soon as it knows, and no other', async () => {
      const [client, other] = [await newClient({ isSuperuser: true }), await newClient({ isSuperuser: true })];
      const ended = [await listensWith(client), await listensWith(other)];
      await revoke(first, client);
      await second.app.get(Catalogue).refresh();
      await eventually(() => ended[0]!(), 'its stream to end');
      await revoke(first, other);
      expect(ended[1]!()).toBe(false);
      await second.app.get(Catalogue).refresh();
      await eventually(() => ended[1]!(), 'the other stream to end');
    });

    it('and hands out nothing to its request that waits, which ends as soon as it knows', async () => {
      const client = await newClient({ isSuperuser: false, scopes: [scopes.consume] });
      const { answer, notify } = await waitsWith(client);
      await revoke(first, client);
      await second.app.get(Catalogue).refresh();
      second.app.get(TokenWatch).look();
      expect(isWatched(client)).toBe(false);
      await notify();
      expect((await answer).status).toBe(403);
    });

    it('and makes no channel for it', async () => {
      const client = await newClient({ isSuperuser: false });
      await revoke(first, client);
      const naam = randomUUID();
      expect((await second.post('/kanaal', { naam }, { token: client.token })).status).toBe(403);
      expect(await sql('SELECT FROM channel WHERE name = $1', [naam])).toEqual([]);
    });

    describe('that publishes', () => {
      let channel: string;
      let client: Client;
      beforeEach(async () => {
        channel = await newChannel();
        client = await newClient({ isSuperuser: false });
      });

      it('and stores nothing of it, but what others publish at the same moment', async () => {
        const other = await newClient({ isSuperuser: false });
        await revoke(first, client);
        const publish = ({ token }: Client) => second.post('/notificaties', notificationTo(channel), { token });
        const answers = await Promise.all([other, client, other].map(publish));
        expect(answers.map(({ status }) => status)).toEqual([201, 403, 201]);
        expect(await publishedBy(client)).toEqual([]);
        expect(await publishedBy(other)).toHaveLength(2);
      });

      it('and stores nothing under its key', async () => {
        await revoke(first, client);
        const { token } = client;
        const answer = await second.put(`/notificaties/${randomUUID()}`, notificationTo(channel), { token });
        expect(answer.status).toBe(403);
        expect(await publishedBy(client)).toEqual([]);
      });

      it('and leaves what it scheduled before as it was', async () => {
        const path = `/notificaties/${randomUUID()}`;
        const headers = { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() };
        const put = (resource: string) =>
          second.put(path, notificationTo(channel, resource), { token: client.token, headers });
        expect((await put('before')).status).toBe(201);
        await revoke(first, client);
        expect((await put('after')).status).toBe(403);
        expect(await publishedBy(client)).toEqual([{ body: expect.stringContaining('"before"') as string }]);
      });

      it('and leaves that as it was, also where it was revoked only while its key was being looked up', async () => {
        const path = `/notificaties/${randomUUID()}`;
        const headers = { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() };
        const put = (resource: string) =>
          second.put(path, notificationTo(channel, resource), { token: client.token, headers });
        expect((await put('before')).status).toBe(201);
        const replacing = second.app.get(ReplaceScheduledService, { strict: false });
        const replace = replacing.replace.bind(replacing);
        const inBetween = vi.spyOn(replacing, 'replace').mockImplementationOnce(async (publication) => {
          await revoke(first, client);
          return replace(publication);
        });
        expect((await put('after')).status).toBe(403);
        inBetween.mockRestore();
        expect(await publishedBy(client)).toEqual([{ body: expect.stringContaining('"before"') as string }]);
      });
    });

    it('and ends no sessions of others for whoever signed in to the console with its secret', async () => {
      const [client, other] = [await newClient({ isSuperuser: true }), await newClient({ isSuperuser: true })];
      const [browser, browserOfOther] = [await signIn(client), await signIn(other)];
      await revoke(first, client);
      const answer = await browser.change('POST', `${second.origin}/console/session/end-all`, { of: 'everybody' });
      expect([answer.status, answer.json.code]).toEqual([401, 'not-signed-in']);
      expect((await browserOfOther.get(`${second.origin}/console/session`)).status).toBe(200);
    });

    it('nor for whoever signed in to the console with its secret', async () => {
      const client = await newClient({ isSuperuser: true });
      const browser = await signIn(client);
      await revoke(first, client);
      const name = randomUUID();
      const answer = await browser.change('POST', `${second.origin}/admin/v1/channels`, { name });
      expect([answer.status, answer.json.code]).toEqual([401, 'not-signed-in']);
      expect(await sql('SELECT FROM channel WHERE name = $1', [name])).toEqual([]);
    });
  });

  it('goes on for an application of which something else was changed', async () => {
    const channel = await newChannel();
    const client = await newClient({ isSuperuser: false });
    const { token } = client;
    const path = `${first.origin}/admin/v1/applications/${client.id}`;
    expect((await first.patch(path, { label: 'Another label' })).status).toBe(200);
    expect((await second.post('/notificaties', notificationTo(channel), { token })).status).toBe(201);
    expect((await second.post('/kanaal', { naam: randomUUID() }, { token })).status).toBe(201);
  });

  it('stores what others publish in one batch with an application whose secret it cannot decrypt', async () => {
    const channel = await newChannel();
    const [client, other] = [await newClient({ isSuperuser: false }), await newClient({ isSuperuser: false })];
    const publish = ({ token }: Client) => second.post('/notificaties', notificationTo(channel), { token });
    const [publishing, partitions] = [
      second.app.get(PublishService, { strict: false }),
      second.app.get(PartitionKeeper, { strict: false }),
    ];
    const published = vi.spyOn(publishing, 'publish');
    const write = partitions.withPartitions.bind(partitions);
    let letGo = () => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const writes = vi.spyOn(partitions, 'withPartitions').mockImplementation(async (work) => {
      await held;
      return write(work);
    });
    // Two batches are written at once; what comes meanwhile is one batch.
    const before = [];
    for (const count of [1, 2]) {
      before.push(publish(other));
      await eventually(() => writes.mock.calls.length === count, 'the batch before to be written');
    }
    const together = [client, other].map(publish);
    await eventually(() => published.mock.calls.length === 4, 'all to be admitted');
    const theirs = new SecretCipher(keyRingOf([newEntry()], 'theirs')).encrypt(client.secret, secretPlace(client.id));
    await first.app
      .get(Catalogue)
      .change((manager, version) =>
        manager.query('UPDATE application SET version = $1, secret = $2 WHERE id = $3', [version, theirs, client.id]),
      );
    letGo();
    const [refused, ...stored] = await Promise.all([...together, ...before]);
    for (const spy of [published, writes]) spy.mockRestore();
    expect(code(refused!)).toEqual([503, 'secret-unreadable']);
    expect(stored.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect([await publishedBy(client), await publishedBy(other)]).toMatchObject([[], { length: 3 }]);
  });

  it('hands out nothing of an abonnement that was deleted while its subscriber waited', async () => {
    const client = await newClient({ isSuperuser: false, scopes: [scopes.consume] });
    const { url, naam } = await subscriptionOf(client);
    await first.post('/notificaties', notificationTo(naam));
    const pulling = second.app.get(PullService, { strict: false });
    const fetch = pulling.fetch.bind(pulling);
    const late = vi.spyOn(pulling, 'fetch').mockImplementationOnce(async (...wanted) => {
      const page = await fetch(...wanted);
      await first.delete(url);
      await second.app.get(Catalogue).refresh();
      return page;
    });
    expect((await second.get(`${url}/notificaties`, { token: client.token })).status).toBe(404);
    late.mockRestore();
  });

  it('answers the waiting request of such an application', async () => {
    const client = await newClient({ isSuperuser: false, scopes: [scopes.consume] });
    const { answer, notify } = await waitsWith(client);
    expect((await first.patch(`${first.origin}/admin/v1/applications/${client.id}`, { label: 'Other' })).status).toBe(
      200,
    );
    await second.app.get(Catalogue).refresh();
    second.app.get(TokenWatch).look();
    await notify();
    expect((await answer).json).toMatchObject({ notificaties: [{}] });
  });

  it('goes on with the stream of events of such an application', async () => {
    const client = await newClient({ isSuperuser: true });
    const [hasEnded, watch] = [await listensWith(client), second.app.get(TokenWatch)];
    const path = `${first.origin}/admin/v1/applications/${client.id}`;
    expect((await first.patch(path, { label: 'Another label' })).status).toBe(200);
    await second.app.get(Catalogue).refresh();
    watch.look();
    const count = () => (Reflect.get(watch, 'watched') as Set<unknown>).size;
    expect([count(), hasEnded()]).toEqual([1, false]);
    await revocations[1]!.revoke(first, client);
    await second.app.get(Catalogue).refresh();
    await eventually(hasEnded, 'its stream to end');
    expect(count()).toBe(0);
  });

  it('says why: the secret is another one, or the right is missing', async () => {
    const channel = await newChannel();
    const [rotated, without] = [await newClient({ isSuperuser: false }), await newClient({ isSuperuser: false })];
    await revocations[1]!.revoke(first, rotated);
    await revocations[2]!.revoke(first, without);
    const publish = ({ token }: Client) => second.post('/notificaties', notificationTo(channel), { token });
    expect(code(await publish(rotated))).toEqual([403, 'invalid-jwt-signature']);
    expect(code(await publish(without))).toEqual([403, 'permission_denied']);
  });
});
