import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { auth, proofBody, proofsOf, wrong } from '../support/abonnements.js';
import { Api } from '../support/api.js';
import {
  answer,
  huge,
  nonsense,
  protectedReceiver,
  Receiver,
  redirect,
  reset,
  type Behaviour,
} from '../support/receiver.js';

let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  [api, receiver] = await Promise.all([Api.start(), Receiver.start()]);
});

afterAll(() => Promise.all([api.close(), receiver.stop()]));

beforeEach(() => {
  receiver.requests.length = 0;
  receiver.always(protectedReceiver);
});

const post = (input: object = {}) => api.post('/abonnement', { callbackUrl: receiver.url, auth, ...input });

const proofs = () => proofsOf(receiver);

describe('proving a callback', () => {
  it('calls it twice with one body, first without authorization, then with it', async () => {
    expect((await post()).status).toBe(201);
    expect(proofs()).toEqual([
      [undefined, proofBody],
      [auth, proofBody],
    ]);
    expect(receiver.requests.map(({ method, headers }) => [method, headers['content-type']])).toEqual([
      ['POST', 'application/json'],
      ['POST', 'application/json'],
    ]);
  });

  it('shows it the same bytes as each notification does: Latin-1, as HTTP reads headers', async () => {
    expect((await post({ auth: 'Bearer geheim-é' })).status).toBe(201);
    expect(proofs()[1]).toEqual(['Bearer geheim-é', proofBody]);
  });

  it.each([200, 201, 202, 204, 206, 209])('is content with %i', async (status) => {
    receiver.always((request, response) => answer(request.headers.authorization ? status : 403)(request, response));
    expect((await post()).status).toBe(201);
  });

  it.each([200, 204, 400, 404, 500, 302])('wants 401 or 403 without authorization, not %i', async (status) => {
    receiver.always(answer(status));
    const { fields } = wrong(await post());
    expect(fields).toEqual(['callbackUrl no-auth-on-callback-url']);
    expect(receiver.requests).toHaveLength(1);
  });

  it.each<[string, Behaviour, string]>([
    ['210', answer(210), '210'],
    ['226', answer(226), '226'],
    ['302', redirect('/elsewhere'), '302'],
    ['401', answer(401), '401'],
    ['500', answer(500), '500'],
    ['a reset', reset, 'cannot be reached'],
    ['nonsense', nonsense, 'cannot be reached'],
  ])('wants 200 to 209 with authorization, not %s', async (_, behaviour, said) => {
    receiver.next(answer(401), behaviour);
    const refused = await post();
    expect(wrong(refused)).toEqual({ status: 400, fields: ['nonFieldErrors invalid-callback-url'] });
    expect(refused.json.invalidParams[0]!.reason).toContain(said);
    expect(receiver.requests).toHaveLength(2);
  });

  it('does not read an answer of 100 MB to its end', async () => {
    receiver.next(answer(401), huge(100_000_000));
    expect((await post()).status).toBe(201);
  });

  it('does not tell of an address that is not public whether its port is closed, silent or speaks another protocol', async () => {
    receiver.always(reset);
    const urls = ['http://127.0.0.1:1/', receiver.url, receiver.url.replace('http:', 'https:')];
    const answers = [];
    for (const callbackUrl of urls) answers.push(await post({ callbackUrl }));
    receiver.always(nonsense);
    answers.push(await post());
    const reason = 'The callback cannot be reached, or gives no answer over HTTP.';
    for (const { json } of answers)
      expect(json.invalidParams).toEqual([{ name: 'callbackUrl', code: 'invalid-callback-url', reason }]);
    // The log does.
    const reasons = api.logged.filter(({ event }) => event === 'callback.not-proved').map((logged) => logged.reason);
    expect(reasons).toContainEqual(expect.stringContaining('ECONNREFUSED'));
    expect(reasons).toContainEqual(expect.stringContaining('fails at TLS'));
  });

  it('tells that there is no such name', async () => {
    const unknown = await post({ callbackUrl: 'http://does-not-exist.invalid/' });
    expect(wrong(unknown).fields).toEqual(['callbackUrl invalid-callback-url']);
    expect(unknown.json.invalidParams[0]!.reason).toMatch(/cannot be reached: (ENOTFOUND|EAI_AGAIN)/);
  });

  it('lets a receiver that knows only proofs until it is registered pass', async () => {
    receiver.always((request, response) => {
      const { kanaal } = JSON.parse(request.text) as { kanaal: string };
      response.writeHead(kanaal === 'test' && request.headers.authorization === auth ? 204 : 401).end();
    });
    expect((await post()).status).toBe(201);
  });

  it('does without the call without authorization where that is switched off', async () => {
    const lenient = await Api.start({ TEST_CALLBACK_AUTH: 'false' });
    try {
      receiver.always(answer(204));
      expect((await lenient.post('/abonnement', { callbackUrl: receiver.url, auth })).status).toBe(201);
      expect(proofs()).toEqual([[auth, proofBody]]);
    } finally {
      await lenient.close();
    }
  });

  it('does not call what callbacks may not use, and says which setting would allow it', async () => {
    const guarded = await Api.start({
      CALLBACK_NETWORKS: '', // as where nobody has set it
      CALLBACK_ALLOWED_NETWORKS: '127.0.0.2',
      CALLBACK_SCHEMES: 'http',
      CALLBACK_PORTS: `${new URL(receiver.url).port},8000-8999`,
    });
    try {
      const refusals = [
        [receiver.url, 'CALLBACK_ALLOWED_NETWORKS'],
        [receiver.url.replace('127.0.0.1', 'localhost'), 'CALLBACK_ALLOWED_NETWORKS'],
        ['http://[::1]:8080/', 'CALLBACK_ALLOWED_NETWORKS'],
        ['https://127.0.0.2:8080/', 'CALLBACK_SCHEMES'],
        ['http://127.0.0.2:1/', 'CALLBACK_PORTS'],
        ['http://127.0.0.2/', 'CALLBACK_PORTS'],
      ];
      for (const [callbackUrl, setting] of refusals) {
        const refused = await guarded.post('/abonnement', { callbackUrl, auth });
        expect(wrong(refused).fields).toEqual(['callbackUrl invalid-callback-url']);
        expect(refused.json.invalidParams[0]!.reason).toMatch(
          new RegExp(`^The callback is refused: .* not one that callbacks may use.* allow it with ${setting}\\.$`),
        );
        expect(refused.json.invalidParams[0]!.reason).not.toMatch(/127\.0\.0\.1|::1/);
      }
      expect(receiver.requests).toEqual([]);
    } finally {
      await guarded.close();
    }
  });

  it('has no transaction open while it waits for the callback', async () => {
    let release = () => {};
    const asked = new Promise<void>((resolve) => {
      receiver.next((_, response) => {
        release = () => void response.writeHead(401).end();
        resolve();
      });
    });
    const slow = post();
    await asked;
    // Another change of the catalogue would wait for a transaction that is open.
    expect((await api.post('/kanaal', { naam: randomUUID() })).status).toBe(201);
    release();
    expect((await slow).status).toBe(201);
  });
});
