import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { keyRingOf, newEntry } from '../../src/secrets/key-ring.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { signingKeyPlace } from '../../src/subscriptions/signing-key-rows.js';
import { authPlace, credentialsPlace } from '../../src/subscriptions/subscription.js';
import { AdminApi } from '../support/admin-api.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';

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
