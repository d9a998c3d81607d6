import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { secretPlace } from '../../src/auth/application.js';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { keyRingOf, newEntry } from '../../src/secrets/key-ring.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { signingKeyPlace } from '../../src/subscriptions/signing-key-rows.js';
import { authPlace, credentialsPlace } from '../../src/subscriptions/subscription.js';
import { AdminApi, type AdminBody } from '../support/admin-api.js';
import { Browser } from '../support/browser.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';
import { signToken } from '../support/tokens.js';

const path = '/admin/v1/subscriptions';
const auth = 'Bearer secret-of-the-receiver';
/** Of another process, which has got the newer key before this one. */
const theirs = new SecretCipher(keyRingOf([newEntry()], 'theirs'));

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([
    AdminApi.start({ ROLES: 'api', SECRET_KEYS: newEntry(), REFUSALS_PER_MINUTE: '5' }),
    Receiver.start(),
  ]);
});
beforeEach(() => {
  receiver.requests.length = 0;
});
afterAll(() => Promise.all([admin.close(), receiver.stop()]));

/** As another process does it: this one learns of it. `$1` is the version. */
const change = (sql: string, ...values: unknown[]) =>
  admin.api.app.get(Catalogue).change((manager, version) => manager.query(sql, [version, ...values]));

describe('a subscription with a secret that this process cannot decrypt', () => {
  async function subscribe(): Promise<string> {
    const { status, json, text } = await admin.api.post('/abonnement', { callbackUrl: receiver.url, auth });
    if (status !== 201) throw new Error(text);
    return lastPart(json.url);
  }

  const loseSecret = {
    auth: (id: string) =>
      change('UPDATE subscription SET version = $1, auth = $3 WHERE id = $2', id, theirs.encrypt(auth, authPlace(id))),
    credentials: (id: string) => {
      const headers = JSON.stringify({ authorization: { kind: 'verbatim' }, tls: null, headers: { 'x-key': 'a' } });
      const stored = theirs.encrypt(headers, credentialsPlace(id));
      return change('UPDATE subscription SET version = $1, credentials = $3 WHERE id = $2', id, stored);
    },
    'signing key': async (id: string) => {
      const { id: key } = (await admin.post(`${path}/${id}/signing-keys`, {})).json;
      const stored = theirs.encrypt(`whsec_${'a'.repeat(32)}`, signingKeyPlace(key));
      await change(
        `WITH key AS (UPDATE signing_key SET secret = $3 WHERE id = $4)
         UPDATE subscription SET version = $1 WHERE id = $2`,
        id,
        stored,
        key,
      );
    },
  };

  type Change = (id: string) => Promise<{ status: number; json: { [field: string]: unknown } }>;
  const own = (body: object) => (id: string) => admin.api.patch(`/abonnement/${id}`, body);
  const changes: Record<string, Change> = {
    'of the URL, by its subscriber,': (id) => own({ callbackUrl: `${receiver.url}/new` })(id),
    'of the URL, by an operator,': (id) => admin.patch(`${path}/${id}`, { callbackUrl: `${receiver.url}/new` }),
    'of the headers': own({ credentials: { headers: { 'x-other': 'b' } } }),
    'while it is disabled': async (id) => {
      await change('UPDATE subscription SET version = $1, disabled_at = now() WHERE id = $2', id);
      return own({ kanalen: [] })(id);
    },
  };

  it.each(
    Object.entries(changes).flatMap(([what, make]) =>
      Object.entries(loseSecret).map(([secret, lose]) => [what, secret, make, lose] as const),
    ),
  )('a change %s is refused without a call to the callback where the %s is one', async (_what, _secret, make, lose) => {
    const id = await subscribe();
    await lose(id);
    receiver.requests.length = 0;
    const { status, json } = await make(id);
    expect([status, json.code]).toEqual([409, 'credentials-unreadable']);
    expect(receiver.requests).toEqual([]);
  });

  it('is changed with a new auth in place of one that was lost', async () => {
    const id = await subscribe();
    await loseSecret.auth(id);
    expect((await own({ callbackUrl: `${receiver.url}/new`, auth: 'Bearer new' })(id)).status).toBe(200);
    expect(receiver.requests.at(-1)!.headers.authorization).toBe('Bearer new');
    expect((await admin.get(`${path}/${id}`)).json.credentials).toMatchObject({ unreadable: null });
  });

  it('is changed with new credentials, with what it has beside them in the call', async () => {
    const id = await subscribe();
    await admin.post(`${path}/${id}/signing-keys`, {});
    await loseSecret.credentials(id);
    const credentials = { authorization: { kind: 'verbatim' }, tls: null, headers: { 'x-key': 'b' } };
    expect((await own({ credentials })(id)).status).toBe(200);
    expect(receiver.requests.at(-1)!.headers).toMatchObject({
      authorization: auth,
      'x-key': 'b',
      'webhook-signature': expect.stringMatching(/^v1,/),
    });
  });

  it('does not become verbatim without a value where it is not known to be so', async () => {
    const { json } = await admin.post(path, {
      ownerClientId: 'superuser',
      callbackUrl: receiver.url,
      credentials: { authorization: { kind: 'zgw', clientId: 'heraut', secret: 'x'.repeat(32) } },
    });
    await loseSecret.credentials(json.id);
    const refused = await own({ credentials: { authorization: { kind: 'verbatim' }, tls: null, headers: null } })(
      json.id,
    );
    expect([refused.status, refused.json.invalidParams]).toMatchObject([
      400,
      [{ name: 'credentials.authorization.auth', code: 'required' }],
    ]);
  });

  it('may have what is not sent any more replaced', async () => {
    const id = await subscribe();
    await loseSecret.auth(id);
    const authorization = { kind: 'zgw', clientId: 'heraut', secret: 'x'.repeat(32) };
    expect((await own({ credentials: { authorization } })(id)).status).toBe(200);
  });
});

describe('a superuser whose secret this process cannot decrypt', () => {
  const host = '127.0.0.1';
  const unreadable = [503, 'secret-unreadable', '10'];

  async function newSuperuser() {
    const [clientId, secret] = [randomUUID(), randomUUID()];
    const service = admin.api.app.get(ApplicationsService);
    const { application } = await service.create({ clientId, secret, label: '', scopes: [], isSuperuser: true });
    const { id } = application;
    const [{ stored }] = await admin.api.app
      .get(Postgres)
      .dataSource.query<[{ stored: string }]>('SELECT secret AS stored FROM application WHERE id = $1', [id]);
    const store = (text: string) => change('UPDATE application SET version = $1, secret = $3 WHERE id = $2', id, text);
    const lose = () => store(theirs.encrypt(secret, secretPlace(id)));
    return { clientId, secret, lose, find: () => store(stored) };
  }
  const signIn = (browser: Browser, clientId: string, secret: string) =>
    browser.change('POST', `${admin.api.origin}/console/session`, { clientId, secret });
  const told = ({ status, json, headers }: { status: number; json: Partial<AdminBody>; headers: Headers }) => [
    status,
    json.code,
    headers.get('retry-after'),
  ];

  it('signs in as soon as it can, however often that was tried before', async () => {
    const { clientId, secret, lose, find } = await newSuperuser();
    await lose();
    for (let times = 0; times < 20; times++)
      expect(told(await signIn(new Browser(), clientId, secret))).toEqual(unreadable);
    await find();
    expect((await signIn(new Browser(), clientId, secret)).status).toBe(200);
  });

  it('keeps its ticket until that can be checked', async () => {
    const { clientId, secret, lose, find } = await newSuperuser();
    const token = signToken({ clientId, secret });
    const { json } = await admin.post('/admin/v1/sign-in-tickets', undefined, { token });
    const enter = async () => {
      const { url } = await new Browser().get(`${admin.api.origin}/console/enter?ticket=${String(json.ticket)}`);
      return url.searchParams.get('error');
    };
    await lose();
    for (let times = 0; times < 10; times++) expect(await enter()).toBe('unavailable');
    await find();
    expect(await enter()).toBeNull();
    expect(await enter()).toBe('ticket-refused');
  });

  it('keeps its session, whose cookie is no guess', async () => {
    const { clientId, secret, lose, find } = await newSuperuser();
    const browser = new Browser();
    expect((await signIn(browser, clientId, secret)).status).toBe(200);
    const session = (of: Browser) => of.get(`${admin.api.origin}/console/session`);
    await lose();
    for (let times = 0; times < 10; times++) expect(told(await session(browser))).toEqual(unreadable);
    const listed = await browser.get(`${admin.api.origin}/admin/v1/channels`, { 'x-heraut-console': '1' });
    expect(told(listed)).toEqual(unreadable);
    await find();
    expect((await session(browser)).status).toBe(200);
    expect(browser.cookie(host, 'heraut_session')).toBeDefined();
  });
});
