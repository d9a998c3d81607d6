import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Api } from '../support/api.js';
import { Receiver } from '../support/receiver.js';

/** For every input: 4xx with a code, never 500, and no row is stored. */

let api: Api;
let receiver: Receiver;
let kanaal: string;
let abonnement: string;

beforeAll(async () => {
  [api, receiver] = await Promise.all([Api.start(), Receiver.start()]);
  kanaal = (await api.post('/kanaal', { naam: 'zaken', filters: ['zaaktype'] })).json.url;
  abonnement = (await api.post('/abonnement', { callbackUrl: receiver.url, auth: 'x' })).json.url;
});

afterAll(() => Promise.all([api.close(), receiver.stop()]));

afterEach(() => {
  // None of it may count as a fault of the server.
  expect(api.logged.filter(({ level, event }) => level === 'error' || event === 'request.failed')).toEqual([]);
});

async function stored(): Promise<unknown> {
  return api.app.get(Postgres).dataSource.query(
    `SELECT (SELECT json_agg(c ORDER BY id) FROM (SELECT id, name, documentation_link, filters FROM channel) c) AS channels,
            (SELECT json_agg(s ORDER BY id) FROM (SELECT id, callback_url, auth, channels::text FROM subscription) s) AS subscriptions,
            (SELECT count(*) FROM notification) AS notifications`,
  );
}

const wholeBodies = {
  'deeply nested lists': '['.repeat(200_000) + ']'.repeat(200_000),
  'deeply nested objects': `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
  'deep nesting that never ends': '['.repeat(500_000),
  'a number with a million digits': `{"naam":${'9'.repeat(1_000_000)}}`,
  'a hundred thousand unknown fields': JSON.stringify(
    Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`x${i}`, 0])),
  ),
  'the prototype as an object': '{"__proto__":{"naam":"x","auth":"x"}}',
  'the constructor': '{"constructor":{"prototype":{"naam":"x"}}}',
  'an empty name of a field': '{"":""}',
  'a field with a name of half a megabyte': `{"${'x'.repeat(500_000)}":1}`,
  'escapes of surrogates as names': '{"\\ud800":"\\udfff"}',
};

const values: Record<string, string> = {
  null: 'null',
  true: 'true',
  'a negative zero': '-0',
  'a number beyond all numbers': '1e400',
  'a whole number that is not exact': '123456789012345678901234567890',
  'an empty list': '[]',
  'a list of lists': '[[[[]]]]',
  'an object': '{"a":{"b":[1]}}',
  'the prototype': '{"__proto__":{"a":1}}',
  'U+0000': '"a\\u0000b"',
  'half a surrogate pair': '"\\ud83d"',
  'a text of half a megabyte': `"${'x'.repeat(500_000)}"`,
  'line ends': '"a\\r\\nb: c"',
  'text that is no URL': '"http://[::1"',
  'a URL of a script': '"javascript:alert(1)"',
  'a URL with space': '"http://a b/"',
  'a port that is none': '"http://example.org:99999/"',
  'an injection of SQL': '"\'); DROP TABLE channel; --"',
  'an empty text': '""',
};

/** Fields that have rules no value above keeps; of the others some values are simply fine. */
const targets: [method: string, path: () => string, field: string, valid: () => object][] = [
  ['POST', () => '/kanaal', 'naam', () => ({ naam: randomUUID() })],
  ['POST', () => '/kanaal', 'documentatieLink', () => ({ naam: randomUUID() })],
  ['POST', () => '/kanaal', 'filters', () => ({ naam: randomUUID() })],
  ['PUT', () => kanaal, 'naam', () => ({ naam: 'zaken', filters: ['zaaktype'] })],
  ['PATCH', () => kanaal, 'filters', () => ({})],
  ['POST', () => '/abonnement', 'callbackUrl', () => ({ auth: 'x' })],
  ['POST', () => '/abonnement', 'auth', () => ({ callbackUrl: receiver.url })],
  ['POST', () => '/abonnement', 'kanalen', () => ({ callbackUrl: receiver.url, auth: 'x' })],
  ['PATCH', () => abonnement, 'kanalen', () => ({})],
  ['PATCH', () => abonnement, 'auth', () => ({})],
  ...['kanaal', 'hoofdObject', 'resource', 'resourceUrl', 'actie', 'aanmaakdatum', 'kenmerken', 'source'].map(
    (field): (typeof targets)[number] => [
      'POST',
      () => '/notificaties',
      field,
      () => ({
        kanaal: 'zaken',
        hoofdObject: 'http://example.org/',
        resource: 'zaak',
        resourceUrl: 'http://example.org/',
        actie: 'create',
        aanmaakdatum: '2025-01-01T10:00:00Z',
      }),
    ],
  ),
];

describe('a body that is not what it should be', () => {
  for (const path of ['/kanaal', '/abonnement', '/notificaties']) {
    it.each(Object.entries(wholeBodies))(`POST ${path}: %s`, async (_, body) => {
      const before = await stored();
      const { status, json } = await api.post(path, body);
      expect([400, 413]).toContain(status);
      expect(json.code).toMatch(/^(invalid|parse_error|payload_too_large)$/);
      expect(await stored()).toEqual(before);
    });
  }
});

describe('a field that is not what it should be', () => {
  for (const [method, path, field, valid] of targets) {
    it(`${method} ${field} of ${path.toString().replace(/^\(\) => /, '')}`, async () => {
      for (const [name, value] of Object.entries(values)) {
        const rest = JSON.stringify({ ...valid(), [field]: 0 });
        const before = await stored();
        const { status, json } = await api.call(method, path(), {
          body: rest.replace(`"${field}":0`, `"${field}":${value}`),
        });
        if (status < 300) continue; // fine for this field, e.g. an injection as a name
        expect([name, status, json.code]).toEqual([name, 400, 'invalid']);
        expect(json.invalidParams.length).toBeGreaterThan(0);
        expect(await stored()).toEqual(before);
      }
    });
  }

  it.each(Object.entries(values))('a filter of an abonnement: %s', async (_, value) => {
    const body = `{"callbackUrl":"${receiver.url}","auth":"x","kanalen":[{"naam":"zaken","filters":{"zaaktype":${value}}}]}`;
    const { status, json } = await api.post('/abonnement', body);
    expect([status, json.code]).toEqual(status === 201 ? [201, undefined] : [400, 'invalid']);
  });

  it.each(Object.entries(values))('a kenmerk of a notificatie: %s', async (_, value) => {
    const urls = '"hoofdObject":"http://example.org/","resourceUrl":"http://example.org/"';
    const rest = '"kanaal":"zaken","resource":"zaak","actie":"create","aanmaakdatum":"2025-01-01"';
    const { status, json } = await api.post('/notificaties', `{${urls},${rest},"kenmerken":{"zaaktype":${value}}}`);
    const { zaaktype } = (json.kenmerken ?? {}) as { zaaktype?: unknown };
    const seen = [status, json.code, typeof zaaktype];
    expect(seen).toEqual(status === 201 ? [201, undefined, 'string'] : [400, 'invalid', 'undefined']);
  });
});

describe('a URL that is not what it should be', () => {
  it.each([
    '/kanaal/..%2f..%2fetc%2fpasswd',
    '/kanaal/%00',
    '/kanaal/%',
    '/kanaal/%ff',
    '/kanaal/%F0%9F%98%80',
    `/kanaal/${'a'.repeat(10_000)}`,
    '/kanaal/{uuid}',
    "/kanaal/1'--",
    '/abonnement/00000000-0000-0000-0000-000000000000',
    '/abonnement//',
    '/;/kanaal',
    '/kanaal?naam=%',
    '/kanaal?naam=%00',
    '/kanaal?naam=%ff',
    `/kanaal?naam=${'a'.repeat(10_000)}`,
    '/kanaal?naam=a&naam=b',
    '/kanaal?naam[$ne]=x',
    '/kanaal?__proto__[a]=b',
    '/kanaal?constructor=x',
    '/kanaal?&&&===',
    '/kanaal?%00',
  ])('%s', async (path) => {
    const { status, json, list } = await api.get(path);
    expect([
      [200, undefined, 0],
      [400, 'invalid', 0],
      [404, 'not_found', 0],
    ]).toContainEqual([status, json.code, list.length]);
  });
});
