import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import type { Scope } from '../../src/auth/scopes.js';
import { Api, superuser } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { sendRaw } from '../support/send-raw.js';
import { signToken } from '../support/tokens.js';

const nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

describe('with the settings as they are by default', () => {
  let api: Api;

  beforeAll(async () => {
    api = await Api.start();
  });

  afterAll(() => api.close());

  it.each([
    ['a list', 'GET', '/api/v1/kanaal'],
    ['the root of the API', 'GET', '/api/v1/'],
    ['a refusal', 'POST', '/admin/v1/applications'],
    ['a path that is not there', 'GET', '/nothing'],
    ['a path that cannot be decoded', 'GET', '/%ZZ'],
    ['a method that is not there', 'DELETE', '/api/v1/kanaal'],
    ['OPTIONS', 'OPTIONS', '/api/v1/kanaal'],
    ['metrics', 'GET', '/metrics'],
    ['health', 'GET', '/health/live'],
    ['the front page', 'GET', '/'],
    ['the explanation of a problem', 'GET', '/ref/fouten/NotFound/'],
    ['a document', 'GET', '/docs/openapi.json'],
    ['a file of a documentation page', 'GET', '/docs/swagger-ui.css'],
  ])('%s has security headers', async (_, method, path) => {
    const { headers } = await api.call(method, api.origin + path, { body: method === 'POST' ? '{' : undefined });
    expect(headers.get('content-security-policy')).toBe(nothing);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('so has the answer to bytes that are not HTTP', async () => {
    expect(await sendRaw(api.origin, 'NONSENSE\r\n\r\n')).toContain(`\r\ncontent-security-policy: ${nothing}\r\n`);
  });

  it.each(['/docs', '/docs/', '/docs/index.html', '/api/v1/schema', '/api/v1/schema/'])(
    'the documentation at %s may do what its page needs, and runs no script in it',
    async (path) => {
      const { status, headers, text } = await api.get(api.origin + path, { token: null });
      expect(status).toBe(200);
      const policy = headers.get('content-security-policy');
      expect(policy).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      const scripts = [...text.matchAll(/<script\b([^>]*)>([^]*?)<\/script>/g)];
      expect(scripts.length).toBeGreaterThan(2);
      for (const [, attributes, content] of scripts) {
        expect(attributes).toMatch(/ src=/);
        expect(content!.trim()).toBe('');
      }
      expect(text).not.toMatch(/<[^>]+\son\w+=/);
    },
  );

  it('a problem is kept by no cache', async () => {
    for (const path of ['/nothing', '/api/v1/']) {
      expect((await api.get(api.origin + path, { token: null })).headers.get('cache-control')).toBe('no-store');
    }
  });

  it.each(['/admin/v1/applications', '/admin/v1/subscriptions', '/api/v1/kanaal', '/docs/openapi.json', '/console'])(
    '%s is kept by no cache that several callers share',
    async (path) => {
      const { status, headers } = await api.call('GET', api.origin + path);
      expect([status < 400, headers.get('cache-control')]).toEqual([true, 'private, no-cache']);
    },
  );

  it('every path answers OPTIONS with its methods, and so does the server as a whole', async () => {
    const pathsOf = async (document: string, base: string) => {
      const { text } = await api.get(api.origin + document, { token: null });
      return Object.keys((JSON.parse(text) as { paths: object }).paths).map((path) => base + path);
    };
    const described = [
      await pathsOf('/docs/openapi.json', ''),
      await pathsOf('/api/v1/openapi.json', '/api/v1'),
    ].flat();
    expect(described.length).toBeGreaterThan(20);
    const others = [
      '/',
      '/docs',
      '/docs/',
      '/docs/swagger-ui.css',
      '/docs/openapi.yaml',
      '/api/v1/',
      '/ref/fouten/Gone/',
    ];
    for (const path of [...described, ...others]) {
      const url = api.origin + path.replace(/\{\w+\}/g, randomUUID());
      const { status, headers, text } = await api.call('OPTIONS', url, { token: null });
      expect([path, status, text]).toEqual([path, 204, '']);
      expect(headers.get('allow')).toMatch(/\w+, .*\bOPTIONS\b|\bOPTIONS\b, \w+/);
    }
    const all = await sendRaw(api.origin, 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(all).toMatch(/^HTTP\/1\.1 204 [^]*\r\nallow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n/);
  });

  it('no page of another origin may read an answer, but for documents', async () => {
    const headers = { origin: 'https://app.example.org', 'access-control-request-method': 'GET' };
    const answers = await Promise.all([
      api.get('/kanaal', { headers }),
      api.call('OPTIONS', '/kanaal', { headers, token: null }),
      api.get(`${api.origin}/metrics`, { headers }),
    ]);
    for (const answer of answers) {
      const names = [...answer.headers.keys()].filter((name) => name.startsWith('access-control-') || name === 'vary');
      expect(names).toEqual([]);
    }
    const document = await api.get('/openapi.json', { headers, token: null });
    expect(document.headers.get('access-control-allow-origin')).toBe('*');
  });

  it('a token whose client id is not known is told apart from one with a wrong signature: clients of the standard do that', async () => {
    const code = async (clientId: string) =>
      (await api.get('/kanaal', { token: signToken({ clientId, secret: 'guessed' }) })).json.code;
    expect([await code('nobody'), await code(superuser.clientId)]).toEqual([
      'invalid-client-identifier',
      'invalid-jwt-signature',
    ]);
  });
});

describe('with hosts, origins, a limit and a port for operators', () => {
  const origin = 'https://app.example.org';
  let api: Api;
  /** Of ADMIN_PORT. */
  let admin: string;

  beforeAll(async () => {
    api = await Api.start({
      ALLOWED_HOSTS: 'nrc.example.org,*.intern.example',
      CORS_ALLOWED_ORIGINS: `https://other.example.org,${origin}`,
      ADMIN_PORT: '0',
      REFUSALS_PER_MINUTE: '5',
    });
    admin = String(api.logged.findLast(({ event }) => event === 'admin.listening')?.url);
  });

  afterAll(() => api.close());

  const get = (path: string, host: string, more = '') =>
    sendRaw(api.origin, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`);

  describe('a host', () => {
    it.each(['nrc.example.org', 'NRC.example.org:8000', 'a.intern.example'])('%s is used in URLs', async (host) => {
      expect(await get('/api/v1/', host)).toContain(`"kanaal":"http://${host}/api/v1/kanaal"`);
    });

    it.each(['evil.example', 'nrc.example.org.evil.example', ''])('%j is refused and not repeated', async (host) => {
      for (const path of ['/api/v1/', '/api/v1/nothing', '/%ZZ', '/docs/', '/']) {
        const answer = await get(path, host);
        expect(answer).toMatch(/^HTTP\/1\.1 421 Misdirected Request\r\n[^]*"code":"host-not-allowed"/);
        expect(answer).toContain('"type":"http://nrc.example.org/ref/fouten/MisdirectedRequest/"');
        expect(answer).not.toContain('evil');
      }
    });

    // The command line in a container asks so, and a browser at the end of an SSH tunnel.
    it.each(['127.0.0.1:8000', '127.0.0.1', '[::1]:8000'])(
      '%s is used in URLs, asked for on this machine',
      async (host) => {
        expect(await get('/api/v1/', host)).toContain(`"kanaal":"http://${host}/api/v1/kanaal"`);
      },
    );

    it.each(['forwarded: for=192.0.2.1', 'X-Forwarded-For: 192.0.2.1', 'Via: 1.1 proxy'])(
      'of this machine is refused to a caller behind a proxy (%s)',
      async (header) => {
        expect(await get('/api/v1/', '127.0.0.1:8000', `${header}\r\n`)).toMatch(/^HTTP\/1\.1 421 /);
      },
    );

    it.each(['localhost:8000', '127.0.0.1.evil.example', '127.0.0.1:8000.evil.example'])(
      '%s is not the address of this machine',
      async (host) => {
        expect(await get('/api/v1/', host)).toMatch(/^HTTP\/1\.1 421 /);
      },
    );

    it('that is unknown is allowed to ask for health: probes use addresses', async () => {
      expect(await get('/health/live', '10.0.0.1')).toMatch(/^HTTP\/1\.1 200 /);
    });
  });

  describe('a page of another origin', () => {
    const preflight = (from: string, path: string) =>
      api.call('OPTIONS', path, {
        token: null,
        headers: {
          origin: from,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization',
        },
      });
    const corsOf = (headers: Headers) =>
      Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'));

    it('may call where its origin is named: the preflight says what, and each answer allows it, a problem too', async () => {
      const { status, headers } = await preflight(origin, '/notificaties');
      expect([status, corsOf(headers)]).toEqual([
        204,
        {
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'OPTIONS, POST',
          'access-control-allow-headers':
            'authorization, content-type, idempotency-key, x-request-id, deliver-after, if-match, if-none-match, last-event-id, traceparent, tracestate, baggage',
          'access-control-expose-headers':
            'location, api-version, notification-id, duplicate-of, idempotent-replayed, retry-after, x-request-id, etag, signing-secret',
          'access-control-max-age': '7200',
          vary: 'Origin',
        },
      ]);
      for (const [path, expected] of [
        ['/kanaal', 200],
        ['/nothing', 404],
      ] as const) {
        const answer = await api.get(path, { headers: { origin } });
        expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([expected, origin]);
      }
    });

    it('may not where it is not named', async () => {
      for (const from of ['https://evil.example', 'null', `${origin}.evil.example`, origin.toUpperCase()]) {
        const { status, headers } = await preflight(from, '/notificaties');
        expect([status, corsOf(headers)]).toEqual([204, { vary: 'Origin' }]);
        expect(corsOf((await api.get('/kanaal', { headers: { origin: from } })).headers)).toEqual({ vary: 'Origin' });
      }
    });
  });

  describe('the port for operators', () => {
    const status = async (url: string, method = 'GET') => (await api.call(method, url)).status;

    it.each(['/admin/v1/applications', '/metrics', '/docs', '/docs/openapi.json', '/docs/swagger-ui.css'])(
      'alone serves %s',
      async (path) => {
        expect([await status(admin + path), await status(api.origin + path)]).toEqual([200, 404]);
        expect([await status(admin + path, 'OPTIONS'), await status(api.origin + path, 'OPTIONS')]).toEqual([204, 404]);
        expect([await status(admin + path, 'DELETE'), await status(api.origin + path, 'DELETE')]).toEqual([405, 404]);
      },
    );

    it.each(['/docs/openapi.json', '/api/v1/openapi.json'])(
      'may be another one than that of the other API: no link in %s goes by a path',
      async (path) => {
        const { text } = await api.get(path.startsWith('/docs') ? admin + path : api.origin + path);
        expect(text).toContain('"description"');
        expect(text).not.toMatch(/\]\(\//);
      },
    );

    it('alone has the sessions of the console', async () => {
      expect([await status(`${admin}/console/session`), await status(`${api.origin}/console/session`)]).toEqual([
        401, 404,
      ]);
    });

    it.each(['/api/v1/kanaal', '/api/v1/', '/api/v1/schema', '/api/v1/openapi.json'])(
      'does not serve %s',
      async (path) => {
        expect([await status(admin + path), await status(api.origin + path)]).toEqual([404, 200]);
        expect([await status(admin + path, 'OPTIONS'), await status(api.origin + path, 'OPTIONS')]).toEqual([404, 204]);
      },
    );

    it.each(['/', '/health/live', '/ref/fouten/NotFound/'])('serves %s, and so does the other', async (path) => {
      expect([await status(admin + path), await status(api.origin + path)]).toEqual([200, 200]);
    });

    it('keeps to the same rules of HTTP', async () => {
      expect(await sendRaw(admin, 'NONSENSE\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [^]*"code":"parse_error"/);
      expect(await sendRaw(admin, 'GET /metrics HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n')).toMatch(/^HTTP\/1\.1 417 /);
      const none = await api.get(`${admin}/admin/v1/applications`, { token: null });
      expect([403, 429]).toContain(none.status);
    });
  });

  describe('an address whose requests are refused', () => {
    const list = (token: string | null) => api.get('/kanaal', { token });

    it('is told to wait when there were too many, and no valid token is, that of another at this address either', async () => {
      const other = await api.tokenWith('notificaties.consumeren');
      // Again where a minute begins in between.
      await eventually(async () => {
        let answer = await list(null);
        while (answer.status === 403) answer = await list(null);
        expect([answer.status, answer.json.code]).toEqual([429, 'throttled']);
        const seconds = Number(answer.headers.get('retry-after'));
        expect(seconds).toBeGreaterThan(0);
        expect(seconds).toBeLessThanOrEqual(60);
        expect((await list(other)).status).toBe(200);
        expect((await list(api.superuserToken)).status).toBe(200);
        return (await list(null)).status === 429;
      });
    });

    it('is not told whether a further guess at the secret of an application is right', async () => {
      const [clientId, secret] = [randomUUID(), randomUUID()];
      const scopes: Scope[] = ['notificaties.consumeren'];
      await api.app.get(ApplicationsService).create({ clientId, secret, label: '', scopes, isSuperuser: false });
      // With a claim of its own each is one that was not seen before.
      const right = () => list(signToken({ clientId, secret, claims: { jti: randomUUID() } }));
      expect((await right()).status).toBe(200);
      await eventually(async () => {
        for (let guess = 0; guess < 6; guess++) {
          const { status } = await list(signToken({ clientId, secret: `guess ${guess}` }));
          expect([403, 429]).toContain(status);
        }
        return (await right()).status === 429;
      });
      expect((await list(api.superuserToken)).status).toBe(200);
    });
  });
});
