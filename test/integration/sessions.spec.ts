import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, get, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import { leastUserRole, userRoles, type UserRole } from '../../src/auth/user-roles.js';
import { readSettings } from '../../src/config/settings.js';
import { Clock } from '../../src/infra/clock.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { LiveListeners } from '../../src/live-events/live-listeners.service.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { ConsoleCookies } from '../../src/sessions/console-cookies.js';
import { Provider } from '../../src/sessions/provider.openid-client.js';
import { sweepSessions } from '../../src/sessions/session-rows.js';
import { hashOf, newToken } from '../../src/sessions/session-token.js';
import { SessionWatch } from '../../src/sessions/session-watch.service.js';
import { Sessions } from '../../src/sessions/sessions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { superuser } from '../support/api.js';
import { Browser } from '../support/browser.js';
import { eventually } from '../support/eventually.js';
import { IdentityProvider, type Person } from '../support/identity-provider.js';
import { sendRaw } from '../support/send-raw.js';
import { signToken } from '../support/tokens.js';

const cookieName = 'heraut_session';
const host = '127.0.0.1';
const hourMs = 3_600_000;

/** Everything but these takes the least role by its method: GET a viewer, all else an administrator. */
const otherRoles: Record<string, UserRole> = {
  notification_dry_run: 'viewer',
  replay_dry_run: 'viewer',
  alert_test: 'operator',
  deliveries_cancel: 'operator',
  deliveries_close: 'operator',
  delivery_cancel: 'operator',
  delivery_retry: 'operator',
  endpoint_reset: 'operator',
  notification_publish: 'operator',
  replay_cancel: 'operator',
  replay_create: 'operator',
  replay_pause: 'operator',
  replay_resume: 'operator',
  subscription_drop_held: 'operator',
  subscription_enable: 'operator',
  subscription_pause: 'operator',
  subscription_preview: 'viewer',
  subscription_test: 'operator',
  subscription_resume: 'operator',
};

interface Operation {
  id: string;
  method: string;
  path: string;
  role: UserRole;
}

/** A person nobody has seen before. */
const somebody = (...roles: string[]): Person => {
  const nr = randomUUID().slice(0, 8);
  return { sub: nr, name: `Jan ${nr}`, email: `${nr}@example.org`, roles };
};
/** A caller from elsewhere, as the proxy in front says: what is refused to it is counted for it alone. */
const elsewhere = () => ({
  'x-forwarded-for': `10.${[1, 2, 3].map(() => Math.floor(Math.random() * 256)).join('.')}`,
});

/** @returns whether the stream of events has ended */
async function listensWith(browser: Browser, origin: string): Promise<() => boolean> {
  const response = await browser.fetch('GET', new URL(`${origin}/admin/v1/events`));
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let hasEnded = false;
  void response.text().then(() => (hasEnded = true));
  return () => hasEnded;
}

describe('where a provider of OpenID Connect is configured', () => {
  let provider: IdentityProvider;
  let admin: AdminApi;
  let origin: string;

  beforeAll(async () => {
    provider = await IdentityProvider.start(() => [`${origin}/console/callback`]);
    admin = await AdminApi.start({
      ...provider.settings,
      ROLES: 'api',
      OIDC_LABEL: 'Stad',
      REFUSALS_PER_MINUTE: '30',
      TRUST_FORWARDED_HEADERS: 'true',
    });
    ({ origin } = admin.api);
  });
  afterAll(() => Promise.all([admin.close(), provider.stop()]));

  const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> =>
    admin.api.app.get(Postgres).dataSource.query(text, values);

  async function signIn(person: Person, browser = new Browser(), query = ''): Promise<Browser> {
    provider.person = person;
    const { url } = await browser.get(`${origin}/console/begin?${query}`);
    expect(url.pathname).toBe('/console/');
    return browser;
  }
  const whoIs = (browser: Browser, headers?: Record<string, string>) =>
    browser.get(`${origin}/console/session`, headers);
  const lists = (browser: Browser, headers?: Record<string, string>) =>
    browser.get(`${origin}/admin/v1/channels`, headers);
  const entriesOf = async ({ sub }: Person) => {
    const { json } = await admin.get(`/admin/v1/audit?subject=user/oidc:${provider.issuer}%23${sub}`);
    return json.entries as Record<string, unknown>[];
  };

  it('no session and no ticket of before a restore is good after it', async () => {
    const browser = await signIn(somebody('viewer'));
    await sql(
      `INSERT INTO sign_in_ticket (token_hash, client_id, signature, expires_at) VALUES ('h', 'c', 's', now() + interval '1 hour')`,
    );
    expect((await whoIs(browser)).status).toBe(200);
    const page = readFileSync(new URL('../../docs/running.md', import.meta.url), 'utf8');
    const step = page.slice(page.indexOf('**To restore a backup**'));
    const [line] = /^ *psql "\$DATABASE_URL" .*$/m.exec(step)!;
    for (const [, statement] of line.matchAll(/-c '([^']*)'/g)) await sql(statement!);
    // This process, which was not stopped, remembers sessions for seconds.
    await eventually(async () => (await whoIs(browser)).json.code === 'not-signed-in', 'the session to be over');
    expect(await sql('SELECT FROM sign_in_ticket')).toEqual([]);
  });

  it('a browser without a session is told how to get one, and nothing else', async () => {
    const browser = new Browser();
    const { status, headers, json } = await whoIs(browser);
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      401,
      'application/problem+json',
      'no-store',
    ]);
    expect(json).toMatchObject({
      code: 'not-signed-in',
      status: 401,
      signIn: { oidc: true, label: 'Stad', password: false },
    });
    const refused = await lists(browser, { 'x-heraut-console': '1' });
    expect([refused.status, refused.json.code]).toEqual([401, 'not-signed-in']);
    // A program that has forgotten its token is told so as ever.
    expect([(await lists(browser)).status, (await lists(browser)).json.code]).toEqual([403, 'permission_denied']);
  });

  it('a browser is led to the provider and back to the page it wanted, and is signed in until it signs out', async () => {
    const person = somebody('administrator');
    provider.person = person;
    const browser = new Browser();
    const to = encodeURIComponent('notifications?channel=a&state=failed');
    const { url, way } = await browser.get(`${origin}/console/begin?to=${to}`);
    expect(String(url)).toBe(`${origin}/console/notifications?channel=a&state=failed`);
    const asked = way.find((each) => each.origin === provider.issuer)!.searchParams;
    expect(asked.get('code_challenge_method')).toBe('S256');
    for (const name of ['state', 'nonce', 'code_challenge']) expect(asked.get(name)!.length).toBeGreaterThan(40);

    const cookie = browser.cookie(host, cookieName)!;
    expect(cookie.text).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(browser.cookie(host, 'heraut_sign_in')).toBeUndefined();
    const name = `${person.name} (${person.email})`;
    expect((await whoIs(browser)).json).toMatchObject({ user: { name, role: 'administrator', via: 'oidc' } });
    expect((await lists(browser)).status).toBe(200);
    const rows = await sql<{ row: string }>('SELECT s::text AS row FROM session s');
    expect(JSON.stringify(rows)).not.toContain(cookie.value);

    expect((await browser.change('DELETE', `${origin}/console/session`)).status).toBe(204);
    expect(browser.cookie(host, cookieName)).toBeUndefined();
    browser.setCookie(host, cookieName, cookie.value);
    expect([(await whoIs(browser)).status, (await lists(browser)).status]).toEqual([401, 401]);
    const of = { by: 'user', client: name, via: 'oidc', address: '127.0.0.1' };
    expect(await entriesOf(person)).toMatchObject([
      { ...of, action: 'session.ended', before: { role: 'administrator' }, after: null },
      { ...of, action: 'session.began', before: null, after: { role: 'administrator' } },
    ]);
  });

  it.each([
    ['//evil.example/', '/console/evil.example/'],
    ['https://evil.example/', '/console/https://evil.example/'],
    [String.raw`\\evil.example`, '/console/evil.example'],
    ['../admin/v1/audit', '/console/'],
    ['begin?to=x', '/console/'],
    ['x'.repeat(3000), '/console/'],
    ['é'.repeat(500), '/console/'],
  ])('nobody is led out of the console: to=%s', async (to, path) => {
    provider.person = somebody('viewer');
    const { url } = await new Browser().get(`${origin}/console/begin?to=${encodeURIComponent(to)}`);
    expect([url.origin, url.pathname.replace(/\/{2,}/g, '/').replace('https:/evil', 'https://evil')]).toEqual([
      origin,
      path,
    ]);
  });

  it('of two installations below one host, each has a session of its own there', () => {
    const sent: string[] = [];
    const reply = { header: (_: string, text: string) => sent.push(text) } as never;
    const request = (...cookies: string[]) =>
      ({
        headers: { cookie: cookies.join('; '), 'x-forwarded-for': '203.0.113.7' },
        protocol: 'https',
        host: 'x.example',
        raw: { socket: { remoteAddress: host } },
      }) as never;
    const [test, accept] = ['/test', '/accept'].map((PATH_PREFIX) => new ConsoleCookies(readSettings({ PATH_PREFIX })));
    test!.setToken(request(), reply, 'x', 'password');
    accept!.setToken(request('__Host-heraut_session.test=x'), reply, 'y', 'password');
    expect(sent).toEqual([
      '__Host-heraut_session.test=x; Path=/; HttpOnly; SameSite=Strict; Secure',
      '__Host-heraut_session.accept=y; Path=/; HttpOnly; SameSite=Strict; Secure',
    ]);
    const both = request('__Host-heraut_session.test=x', '__Host-heraut_session.accept=y');
    expect([test!.readToken(both), accept!.readToken(both)]).toEqual(['x', 'y']);
  });

  it('behind a proxy with TLS and a path of its own, all of this is for the address that browsers know', async () => {
    const cookies = new ConsoleCookies({ CONSOLE_URL: 'https://x.example/ops/console', PATH_PREFIX: '' });
    const sent: string[] = [];
    const reply = { header: (_: string, text: string) => sent.push(text) } as never;
    const request = { headers: {}, protocol: 'http', host: 'internal' } as never;
    cookies.set(request, reply, 'session', 'x');
    expect(sent).toEqual(['__Secure-heraut_session=x; Path=/ops; HttpOnly; SameSite=Strict; Secure']);
    expect(cookies.urlFor(request)).toBe('https://x.example/ops/console');
    expect(cookies.isOwnOrigin(request, 'https://x.example')).toBe(true);

    // A browser on the machine itself, which uses a ticket, passes by that proxy: it would never send a cookie for
    // /ops.
    const cookie = (text: string, remoteAddress = '127.0.0.1') =>
      ({ headers: { cookie: text }, protocol: 'http', host: '127.0.0.1', raw: { socket: { remoteAddress } } }) as never;
    cookies.setToken(cookie('__Secure-heraut_session=before'), reply, 'y', 'ticket');
    const here = 'heraut_session_here=y';
    expect(sent.slice(1)).toEqual([
      '__Secure-heraut_session=; Path=/ops; HttpOnly; SameSite=Strict; Secure; Max-Age=0',
      `${here}; Path=/; HttpOnly; SameSite=Strict`,
    ]);
    expect([cookies.readToken(cookie(here)), cookies.readToken(cookie(here, '10.0.0.1'))]).toEqual(['y', undefined]);
    expect(cookies.readToken(cookie(`${here}; __Secure-heraut_session=x`))).toBe('x');

    // So does one that uses a secret, unless it came by the proxy after all, whatever host that one names to Heraut.
    sent.length = 0;
    const at = (from: object) =>
      ({
        headers: {},
        protocol: 'http',
        host: 'x.example',
        raw: { socket: { remoteAddress: host } },
        ...from,
      }) as never;
    const there = '__Secure-heraut_session=y; Path=/ops; HttpOnly; SameSite=Strict; Secure';
    cookies.setToken(at({ host: 'localhost:2222' }), reply, 'y', 'password');
    cookies.setToken(at({ host: 'localhost:2222', headers: { origin: 'https://x.example' } }), reply, 'y', 'password');
    cookies.setToken(at({ host: 'localhost:2222', headers: { 'x-forwarded-for': host } }), reply, 'y', 'password');
    cookies.setToken(at({}), reply, 'y', 'password');
    cookies.setToken(at({ host: 'localhost:2222' }), reply, 'y', 'oidc');
    expect(sent).toEqual([`${here}; Path=/; HttpOnly; SameSite=Strict`, there, there, there, there]);

    const { headers } = await admin.api.get(`${origin}/console/begin`, {
      token: null,
      headers: { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'y.example', 'x-forwarded-for': '10.0.0.9' },
    });
    expect(headers.get('location')).toContain(encodeURIComponent('https://y.example/console/callback'));
    expect(headers.get('set-cookie')).toMatch(
      /^__Host-heraut_sign_in=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/,
    );
  });

  it('after a sign-out the provider is asked not to let the user in without a word', async () => {
    await signIn(somebody('viewer'), new Browser(), 'again=1');
    expect(provider.prompts.at(-1)).toBe('login');
  });

  describe('nobody is signed in', () => {
    const expectFailure = async (browser: Browser, address: string | URL, reason: string) => {
      const { url } = await browser.get(address, elsewhere());
      expect([url.pathname, url.searchParams.get('error')]).toEqual(['/console/sign-in', reason]);
      expect(browser.cookie(host, cookieName)).toBeUndefined();
    };
    /** The address that the provider leads to, unused. */
    async function callbackFor(browser: Browser, from = new URL(`${origin}/console/begin`)): Promise<URL> {
      provider.person = somebody('viewer');
      let url = from;
      for (let step = 0; step < 10 && !url.pathname.startsWith('/console/callback'); step++) {
        const { headers } = await browser.fetch('GET', url);
        url = new URL(headers.get('location')!, url);
      }
      return url;
    }

    it.each([[[]], [['something else']]])('who has no role: %j', async (roles) => {
      provider.person = somebody(...roles);
      const wanted = `${origin}/console/begin?to=alerts`;
      await expectFailure(new Browser(), wanted, 'no-role');
      expect((await new Browser().get(wanted)).url.searchParams.get('to')).toBe('alerts');
      const { claim, has } = admin.api.logged.findLast(({ event }) => event === 'sign-in.no-role')!;
      expect([claim, has]).toEqual(['roles', expect.arrayContaining(['sub', 'name', 'roles'])]);
    });

    it('whom the provider does not let in', async () => {
      provider.person = undefined;
      await expectFailure(new Browser(), `${origin}/console/begin`, 'denied');
    });

    it('by an answer with another state, of another browser, or with a code that was used before', async () => {
      const browser = new Browser();
      const callback = await callbackFor(browser);
      await expectFailure(new Browser(), callback, 'begin-again');
      const other = new URL(callback);
      other.searchParams.set('state', 'another');
      await expectFailure(browser, other, 'begin-again');

      // As with two tabs, of which the first one comes back first.
      const newer = await callbackFor(browser);
      await expectFailure(browser, callback, 'begin-again');
      const kept = browser.cookie(host, 'heraut_sign_in')!.value;
      expect((await browser.get(newer)).url.pathname).toBe('/console/');
      expect(browser.cookie(host, 'heraut_sign_in')).toBeUndefined();
      expect((await browser.get(newer)).url.searchParams.get('error')).toBe('begin-again');
      const thief = new Browser();
      thief.setCookie(host, 'heraut_sign_in', kept);
      await expectFailure(thief, newer, 'begin-again');
    });

    it.each(['x:99999', '1.2.3.999', '[:::]', 'xn--'])('under a host that is none: %s', async (wrongHost) => {
      const from = admin.api.logged.length;
      const lines = [
        'GET /console/callback?code=x&state=y HTTP/1.1',
        `Host: ${wrongHost}`,
        'Connection: close',
        '',
        '',
      ];
      const answer = await sendRaw(origin, lines.join('\r\n'));
      expect(answer).toMatch(/^HTTP\/1\.1 303 [^]*\r\nlocation: \.\/sign-in\?error=begin-again\r\n/i);
      expect(admin.api.logged.slice(from).filter(({ event }) => event === 'request.failed')).toEqual([]);
    });

    it('and led out of the console, by what stands in its cookie', async () => {
      const browser = new Browser();
      const callback = await callbackFor(browser);
      const { value } = browser.cookie(host, 'heraut_sign_in')!;
      const begun = JSON.parse(Buffer.from(value, 'base64url').toString()) as object;
      const other = Buffer.from(JSON.stringify({ ...begun, to: 'http://127.0.0.1:9/' })).toString('base64url');
      browser.setCookie(host, 'heraut_sign_in', other);
      expect((await browser.get(callback)).url.origin).toBe(origin);
    });

    it('with an ID token that has ended by the clock of Postgres, whatever that of this machine says', async () => {
      let aheadMs = 0;
      const fresh = new Provider(readSettings(provider.settings), { now: () => Date.now() + aheadMs } as LedgerClock);
      provider.person = somebody('viewer');
      const claims = async () => {
        const { url, begun } = await fresh.begin(`${origin}/console/callback`, false);
        return fresh.finish(await callbackFor(new Browser(), url), begun);
      };
      try {
        expect(await claims()).toMatchObject({ sub: provider.person.sub });
        aheadMs = hourMs;
        await expect(claims()).rejects.toMatchObject({ cause: { code: 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' } });
      } finally {
        await fresh.close();
      }
    });

    it('while the provider does not answer, and is again when it does', async () => {
      const settings = readSettings(provider.settings);
      const fresh = new Provider(settings, { now: () => 0 } as LedgerClock);
      const begins = () => fresh.begin(`${origin}/console/callback`, false);
      const browser = new Browser();
      const callback = await callbackFor(browser);
      provider.isAway = true;
      try {
        await expect(begins()).rejects.toMatchObject({ reason: 'provider-unavailable' });
        await expectFailure(browser, callback, 'provider-unavailable');
        const failed = admin.api.logged.find(({ reason }) => reason === 'provider-unavailable');
        expect(failed).toMatchObject({ event: 'sign-in.failed', level: 'warn', refused: 1 });
      } finally {
        provider.isAway = false;
      }
      expect((await begins()).url.origin).toBe(provider.issuer);
      await fresh.close();
    });

    it.each([
      ['begin-again', false],
      ['provider-unavailable', true],
    ])('by codes that are made up, about which the provider is not asked without end: %s', async (why, isAway) => {
      const time = admin.api.app.get(Clock);
      const [minuteMs, beganMs] = [Math.floor(time.now() / 60_000) * 60_000, performance.now()];
      // Its last moment lasts on a slow machine. It does go by: a clock that stands still is one that was set.
      const inMinute = () => minuteMs + Math.min(performance.now() - beganMs, 59_999);
      const minute = vi.spyOn(time, 'now').mockImplementation(inMinute);
      // As it does each few seconds: until then the clock of Postgres seems to have been set as well.
      await admin.api.app.get(LedgerClock).compare();
      const [from, user] = [elsewhere(), new Browser()];
      const begun = { state: 's', nonce: 'n', verifier: 'v'.repeat(43), to: './' };
      const forged = Buffer.from(JSON.stringify(begun)).toString('base64url');
      const failure = async () => {
        const browser = new Browser(from);
        browser.setCookie(host, 'heraut_sign_in', forged);
        const { url } = await browser.get(`${origin}/console/callback?code=x&state=s&iss=${provider.issuer}`);
        return url.searchParams.get('error');
      };
      try {
        const callback = await callbackFor(user);
        // A faulty client beside them keeps nobody from signing in.
        for (let call = 0; call < 40; call++) await lists(new Browser(from));
        const nothing = await new Browser(from).get(`${origin}/console/callback?code=x&state=s`);
        expect(nothing.url.searchParams.get('error')).toBe('begin-again');
        const before = provider.codes;
        provider.isAway = isAway;
        const failures = await Promise.all(Array.from({ length: 50 }, failure));
        expect(new Set(failures)).toEqual(new Set([why, 'throttled']));
        expect(await failure()).toBe('throttled');
        const asked = provider.codes - before;
        // Those that were under way when it was used up are counted no more.
        expect(asked).toBeGreaterThanOrEqual(30);
        expect(asked).toBeLessThan(30 + 8);
        provider.isAway = false;
        await signIn(somebody('viewer'), new Browser(elsewhere()));
        minute.mockReturnValue(time.now() + 60_000);
        expect((await user.get(callback, from)).url.pathname).toBe('/console/');
      } finally {
        provider.isAway = false;
        minute.mockRestore();
      }
    });

    it('with a secret', async () => {
      const body = { clientId: superuser.clientId, secret: superuser.secret };
      const { status, json } = await new Browser().change('POST', `${origin}/console/session`, body);
      expect([status, json.code]).toEqual([403, 'sign-in-refused']);
    });
  });

  describe('the role of a user', () => {
    const byRole = {} as Record<UserRole, Browser>;
    beforeAll(async () => {
      for (const role of userRoles) byRole[role] = await signIn(somebody('none of ours', role));
    });

    const operations = (): Operation[] =>
      Object.entries(admin.document.paths).flatMap(([path, item]) =>
        Object.entries(item as unknown as Record<string, Record<string, string>>).flatMap(([method, operation]) =>
          path.startsWith('/admin/')
            ? [{ id: operation.operationId!, method, path, role: operation[leastUserRole] as UserRole }]
            : [],
        ),
      );

    it('is said in the document for every operation', () => {
      expect(operations().length).toBeGreaterThan(50);
      const said = Object.fromEntries(operations().map(({ id, role }) => [id, role]));
      const byMethod = Object.fromEntries(
        operations().map(({ id, method }) => [id, method === 'get' ? 'viewer' : 'administrator']),
      );
      // Operations that are added have the role of their method, or are listed above.
      expect(said).toEqual({ ...byMethod, ...otherRoles });
    });

    it('is said there with the code of its refusal, and that of a session that is over', () => {
      const paths = admin.document.paths as unknown as Record<string, Record<string, { responses: Responses }>>;
      type Responses = Record<number, { description: string } | undefined>;
      const codes = [
        [401, '`not-signed-in`'],
        [403, '`role-too-low`'],
        [403, '`cross-site`'],
      ] as const;
      const unsaid = operations().filter(({ method, path }) => {
        const { responses } = paths[path]![method]!;
        return !codes.every(([status, code]) => responses[status]?.description.includes(code));
      });
      expect(unsaid).toEqual([]);
    });

    it('is demanded by every operation, whoever hides its button', async () => {
      const refused: string[] = [];
      const calls = operations().flatMap(({ method, path, role }) =>
        userRoles.slice(0, userRoles.indexOf(role)).map((lower) => ({ method, path, lower })),
      );
      expect(calls.length).toBeGreaterThan(50);
      for (const { method, path, lower } of calls) {
        const url = `${origin}${path.replaceAll(/\{\w+\}/g, randomUUID())}`;
        const { status, json } = await byRole[lower].change(
          method.toUpperCase(),
          url,
          method === 'delete' ? undefined : {},
        );
        if (status !== 403 || json.code !== 'role-too-low') refused.push(`${lower}: ${method} ${path} ${status}`);
      }
      expect(refused).toEqual([]);
    });

    it('allows what it is for, and the change is noted as the user’s', async () => {
      const pause = `${origin}/admin/v1/subscriptions/${randomUUID()}/pause`;
      expect((await byRole.operator.change('POST', pause)).status).toBe(404);
      const body = { clientId: randomUUID(), label: 'Made by a user' };
      const made = await byRole.administrator.change('POST', `${origin}/admin/v1/applications`, body);
      expect(made.status).toBe(201);
      const { json } = await admin.get(`/admin/v1/audit?subject=application/${String(made.json.id)}`);
      const { user } = (await whoIs(byRole.administrator)).json as { user: { name: string } };
      expect(json.entries).toMatchObject([
        { by: 'user', client: user.name, via: 'oidc', action: 'application.created' },
      ]);
    });

    it('gives nothing in the Notificaties API, which takes tokens alone', async () => {
      for (const path of ['/api/v1/kanaal', '/api/v1/abonnement']) {
        const { status, json } = await byRole.administrator.get(origin + path);
        expect([status, json.code]).toEqual([403, 'permission_denied']);
      }
    });

    it.each([
      [{}, undefined],
      [{ 'x-heraut-console': 'yes' }, undefined],
      [{ 'x-heraut-console': '0', 'sec-fetch-site': 'cross-site' }, undefined],
      [{ 'x-heraut-console': '1', 'sec-fetch-site': 'cross-site' }, undefined],
      [{ 'x-heraut-console': '1', 'sec-fetch-site': 'same-site' }, undefined],
      [{ 'x-heraut-console': '1', origin: 'https://evil.example' }, undefined],
      [{ 'x-heraut-console': '1', origin: 'null' }, undefined],
      [{ 'x-heraut-console': '1', 'sec-fetch-site': 'same-origin' }, 404],
      [{ 'x-heraut-console': '1', origin: 'own' }, 404],
      [{ 'x-heraut-console': '1' }, 404],
      [{ 'x-heraut-console': '0' }, 404],
    ])('counts for a change only from a page of the console: %j', async (given, expected) => {
      const headers = Object.fromEntries(
        Object.entries(given).map(([name, value]) => [name, value === 'own' ? origin : value]),
      );
      const pause = `${origin}/admin/v1/subscriptions/${randomUUID()}/pause`;
      const { status, json } = await byRole.operator.visit('POST', pause, headers);
      expect([status, json.code]).toEqual(expected ? [expected, 'not_found'] : [403, 'cross-site']);
    });
  });

  describe('a session', () => {
    let browser: Browser;
    let person: Person;
    let later: number;
    /** Without `later`. */
    let ledgerNow: () => number;
    let running: () => number;

    beforeAll(() => {
      const ledgerClock = admin.api.app.get(LedgerClock);
      running = ledgerClock.now.bind(ledgerClock);
      ledgerClock.now = () => ledgerNow() + later;
    });
    beforeEach(async () => {
      later = 0;
      ledgerNow = running;
      person = somebody('operator');
      browser = await signIn(person);
    });
    afterAll(() => {
      later = 0;
      ledgerNow = running;
    });

    const isOver = async (of: Browser) => (await whoIs(of, { 'x-heraut-console': '0' })).status === 401;

    it('ends when it is not used for an hour; that a page is open is no use, also where it asks with a POST', async () => {
      const pause = `${origin}/admin/v1/subscriptions/${randomUUID()}/pause`;
      for (const minutes of [20, 40, 59]) {
        later = minutes * 60_000;
        expect(await isOver(browser)).toBe(false);
        expect((await browser.visit('POST', pause, { 'x-heraut-console': '0' })).status).toBe(404);
      }
      later = hourMs + 1000;
      expect(await isOver(browser)).toBe(true);
    });

    it('is used also where a page has just asked for news by itself', async () => {
      later = hourMs / 2;
      expect(await isOver(browser)).toBe(false);
      expect((await lists(browser)).status).toBe(200);
      later = 1.25 * hourMs;
      expect(await isOver(browser)).toBe(false);
    });

    it('goes on while it is used, for twelve hours and no longer', async () => {
      for (let half = 1; half < 24; half++) {
        later = (half * hourMs) / 2;
        expect((await lists(browser)).status).toBe(200);
      }
      later = 12 * hourMs + 1000;
      expect((await lists(browser)).status).toBe(401);
    });

    it('is asked about with one statement at most, and once in three seconds', async () => {
      const { dataSource } = admin.api.app.get(Postgres);
      const query = dataSource.query.bind(dataSource);
      let looks = 0;
      dataSource.query = ((text: string, values?: unknown[]) => {
        if (/session/.test(text)) looks++;
        return query(text, values);
      }) as typeof dataSource.query;
      const fixed = running();
      ledgerNow = () => fixed; // all of them come within the three seconds
      try {
        later += 5000;
        await Promise.all(Array.from({ length: 10 }, () => lists(browser)));
        expect(looks).toBe(1);
        await lists(browser);
        expect(looks).toBe(1);
        later += 3000;
        await lists(browser);
        expect(looks).toBe(2);
      } finally {
        dataSource.query = query;
      }
    });

    it('of another process, ended there, is over here within three seconds', async () => {
      await sql('DELETE FROM session WHERE user_id LIKE $1', [`%#${person.sub}`]);
      later += 3000;
      expect(await isOver(browser)).toBe(true);
    });

    it('of another process, ended there, is over here also where the clock was set back meanwhile', async () => {
      await sql('DELETE FROM session WHERE user_id LIKE $1', [`%#${person.sub}`]);
      later -= hourMs;
      expect(await isOver(browser)).toBe(true);
    });

    it('ends in every browser of the user, and in nobody else’s', async () => {
      const [second, other] = [await signIn(person), await signIn(somebody('viewer'))];
      expect((await browser.change('POST', `${origin}/console/session/end-all`, {})).status).toBe(204);
      expect([await isOver(browser), await isOver(second), await isOver(other)]).toEqual([true, true, false]);
      expect((await entriesOf(person))[0]).toMatchObject({ action: 'session.ended-everywhere' });
    });

    it('of everybody is ended by an administrator, and by no one else', async () => {
      const everybody = (of: Browser) => of.change('POST', `${origin}/console/session/end-all`, { of: 'everybody' });
      const refused = await everybody(browser);
      expect([refused.status, refused.json.code]).toEqual([403, 'role-too-low']);
      const administrator = await signIn(somebody('administrator'));
      expect((await everybody(administrator)).status).toBe(204);
      expect([await isOver(browser), await isOver(administrator)]).toEqual([true, true]);
    });

    it('is replaced by the next one of the same browser', async () => {
      const { value } = browser.cookie(host, cookieName)!;
      await signIn(person, browser);
      const thief = new Browser();
      thief.setCookie(host, cookieName, value);
      expect([await isOver(browser), await isOver(thief)]).toEqual([false, true]);
    });

    it('is not watched for a listener who left before the answer began', async () => {
      const [listeners, server] = [admin.api.app.get(LiveListeners), admin.api.app.getHttpServer() as Server];
      const prepare = listeners.prepare.bind(listeners);
      const hasLeft = new Promise((resolve) =>
        server.once('connection', (socket: Socket) => socket.once('close', resolve)),
      );
      const leaving = new AbortController();
      const prepared = new Promise<void>((resolve) => {
        listeners.prepare = async (caller) => {
          leaving.abort();
          await hasLeft;
          const now = await prepare(caller);
          setImmediate(resolve);
          return now;
        };
      });
      try {
        const headers = { cookie: `${cookieName}=${browser.cookie(host, cookieName)!.value}` };
        const agent = new Agent();
        const call = get(`${origin}/admin/v1/events`, { headers, agent, signal: leaving.signal });
        await expect(once(call, 'response')).rejects.toThrow('aborted');
        await prepared;
      } finally {
        listeners.prepare = prepare;
      }
      const kept = [Reflect.get(admin.api.app.get(SessionWatch), 'watched'), Reflect.get(listeners, 'joining')];
      expect((kept as { size: number }[]).map(({ size }) => size)).toEqual([0, 0]);
      await eventually(() => (Reflect.get(listeners, 'places') as string[]).length === 0, 'its place to be free');
    });

    it('takes its stream of events along when it ends, here or in another process', async () => {
      const listen = (of: Browser) => listensWith(of, origin);
      const [other, second] = [await signIn(somebody('viewer')), await signIn(person)];
      const ended = [await listen(browser), await listen(second), await listen(other)];
      await browser.change('DELETE', `${origin}/console/session`);
      await eventually(() => ended[0]!(), 'the first stream to end');
      await sql('DELETE FROM session WHERE user_id LIKE $1', [`%#${person.sub}`]);
      await admin.api.app.get(SessionWatch).look();
      await eventually(() => ended[1]!(), 'the second stream to end');
      expect(ended[2]!()).toBe(false);
      await other.change('DELETE', `${origin}/console/session`);
      await eventually(() => ended[2]!(), 'the third stream to end');
    });

    it('counts also where the browser has a password for a proxy in front, which it sends along', async () => {
      const basic = { authorization: `Basic ${Buffer.from('jan:secret').toString('base64')}` };
      const pause = `${origin}/admin/v1/subscriptions/${randomUUID()}/pause`;
      const browser = await signIn(somebody('operator'), new Browser(basic));
      const [listed, changed] = [await lists(browser), await browser.change('POST', pause)];
      expect([listed.status, changed.status]).toEqual([200, 404]);
      const { status, json } = await browser.visit('POST', pause);
      expect([status, json.code]).toEqual([403, 'cross-site']);
      const hasEnded = await listensWith(browser, origin);
      expect((await browser.change('DELETE', `${origin}/console/session`)).status).toBe(204);
      await eventually(hasEnded, 'its stream of events to end');
      const over = await lists(browser, { 'x-heraut-console': '1' });
      expect([over.status, over.json.code]).toEqual([401, 'not-signed-in']);
      expect((await lists(new Browser(basic))).json.code).toBe('permission_denied');
    });

    it('that has ended is swept, and no other', async () => {
      const count = async () => (await sql('SELECT FROM session WHERE user_id LIKE $1', [`%#${person.sub}`])).length;
      const sweep = () => sweepSessions(admin.api.app.get(Postgres), new AbortController().signal);
      await sweep();
      expect(await count()).toBe(1);
      await sql(`UPDATE session SET ends_at = now() WHERE user_id LIKE $1`, [`%#${person.sub}`]);
      await sweep();
      expect(await count()).toBe(0);
    });

    it('that another process began counts also for an address that sends wrong tokens', async () => {
      const token = newToken();
      await sql(
        `INSERT INTO session SELECT (jsonb_populate_record(session, jsonb_build_object('token_hash', $2::text))).*
         FROM session WHERE user_id LIKE $1`,
        [`%#${person.sub}`, hashOf(token)],
      );
      const from = elsewhere();
      const wrong = () => new Browser(from).get(`${origin}/admin/v1/channels`, { authorization: 'Bearer wrong' });
      await eventually(async () => (await wrong()).status === 429, 'the address to be told to wait');
      const another = new Browser(from);
      another.setCookie(host, cookieName, token);
      expect((await lists(another)).status).toBe(200);
    });

    it('that nobody has is looked for no more than refusals are answered, and others of the address go on', async () => {
      const { dataSource } = admin.api.app.get(Postgres);
      const query = dataSource.query.bind(dataSource);
      const from = elsewhere();
      expect((await lists(browser, from)).status).toBe(200);
      let looks = 0;
      dataSource.query = ((text: string, values?: unknown[]) => {
        if (/FROM session/.test(text)) looks++;
        return query(text, values);
      }) as typeof dataSource.query;
      try {
        const guess = async (value: string) => {
          const guesser = new Browser(from);
          guesser.setCookie(host, cookieName, value);
          return (await lists(guesser)).status;
        };
        const random = () => (randomUUID() + randomUUID()).replaceAll('-', '').slice(0, 43);
        for (const nonsense of ['', 'x', 'x'.repeat(44), `${random().slice(1)}!`])
          expect(await guess(nonsense)).toBe(401);
        expect(looks).toBe(0);
        await eventually(async () => (await guess(random())) === 429, 'the address to be told to wait');
        const before = looks;
        for (let times = 0; times < 10; times++) await guess(random());
        // A minute may begin in between.
        expect(looks - before).toBeLessThanOrEqual(10);
        later += 3000;
        expect((await lists(browser, from)).status).toBe(200);
      } finally {
        dataSource.query = query;
      }
    });

    it('is known without a turn where others of the address, all at once, send cookies that nobody has', async () => {
      const { dataSource } = admin.api.app.get(Postgres);
      const query = dataSource.query.bind(dataSource);
      const from = elsewhere();
      const own = hashOf(browser.cookie(host, cookieName)!.value);
      let letGo = () => {};
      const held = new Promise<void>((resolve) => (letGo = resolve));
      const found = vi.spyOn(admin.api.app.get(Sessions), 'find');
      let looks = 0;
      dataSource.query = (async (text: string, values: unknown[] = []) => {
        if (/FROM session/.test(text) && !values.includes(own)) {
          looks++;
          await held;
        }
        return query(text, values);
      }) as typeof dataSource.query;
      try {
        const guesses = Array.from({ length: 200 }, () => {
          const guesser = new Browser(from);
          guesser.setCookie(host, cookieName, newToken());
          return lists(guesser);
        });
        await eventually(() => found.mock.calls.length === guesses.length, 'all of them to be there');
        later += 5000;
        expect((await lists(browser, from)).status).toBe(200);
        letGo();
        const statuses = new Set((await Promise.all(guesses)).map(({ status }) => status));
        expect(statuses).toEqual(new Set([401, 429]));
        // As many as refusals are answered, and those that were under way then. A minute may begin in between.
        expect(looks).toBeLessThanOrEqual(2 * (30 + 8));
      } finally {
        letGo();
        found.mockRestore();
        dataSource.query = query;
      }
    });
  });
});

describe('where no provider is configured', () => {
  let admin: AdminApi;
  let origin: string;

  beforeAll(async () => {
    admin = await AdminApi.start({ ROLES: 'api', REFUSALS_PER_MINUTE: '20', TRUST_FORWARDED_HEADERS: 'true' });
    ({ origin } = admin.api);
  });
  afterAll(() => admin.close());

  const signIn = (browser: Browser, clientId: string, secret: string) =>
    browser.change('POST', `${origin}/console/session`, { clientId, secret });
  const isIn = async (browser: Browser) => (await browser.get(`${origin}/console/session`)).status === 200;
  const ticket = async (token?: string) => {
    const { status, json } = await admin.post('/admin/v1/sign-in-tickets', undefined, { token });
    expect(status).toBe(201);
    return String(json.ticket);
  };
  async function newSuperuser() {
    const [clientId, secret] = [randomUUID(), randomUUID()];
    const service = admin.api.app.get(ApplicationsService);
    const { application } = await service.create({ clientId, secret, label: '', scopes: [], isSuperuser: true });
    return { clientId, secret, id: application.id };
  }

  it('a user signs in with the client id and the secret of a superuser', async () => {
    const browser = new Browser();
    expect((await browser.get(`${origin}/console/session`)).json).toMatchObject({
      signIn: { oidc: false, label: null, password: true },
    });
    const { status, json } = await signIn(browser, superuser.clientId, superuser.secret);
    const user = { name: superuser.clientId, role: 'administrator', via: 'password' };
    expect([status, json]).toEqual([200, { user, expiresAt: expect.any(String), version: expect.any(String) }]);
    expect((await browser.get(`${origin}/admin/v1/channels`)).status).toBe(200);
    const { json: audit } = await admin.get(`/admin/v1/audit?subject=user/client:${superuser.clientId}&limit=1`);
    expect(audit.entries).toMatchObject([{ by: 'user', client: superuser.clientId, action: 'session.began' }]);
  });

  it('nobody else does, however often they try', async () => {
    const from = elsewhere();
    const [browser, { clientId, secret }] = [new Browser(from), await newSuperuser()];
    const publisher = { clientId: randomUUID(), secret: randomUUID(), label: '', scopes: [], isSuperuser: false };
    await admin.api.app.get(ApplicationsService).create(publisher);
    for (const [id, guess] of [
      [clientId, 'wrong'],
      ['nobody', secret],
      [publisher.clientId, publisher.secret],
    ] as const) {
      const { status, json } = await signIn(browser, id, guess);
      expect([status, json.code]).toEqual([403, 'sign-in-refused']);
    }
    await eventually(async () => {
      for (let guess = 0; guess < 21; guess++) await signIn(browser, clientId, `guess ${guess}`);
      // Not even the right one is looked at any more in this minute.
      return (await signIn(browser, clientId, secret)).status === 429;
    });
    expect(await isIn(browser)).toBe(false);
    expect((await signIn(new Browser(elsewhere()), clientId, secret)).status).toBe(200);
  });

  it('a page of another origin does not sign a browser in', async () => {
    const body = { clientId: superuser.clientId, secret: superuser.secret };
    const { status, json } = await new Browser().visit('POST', `${origin}/console/session`, {}, body);
    expect([status, json.code]).toEqual([403, 'cross-site']);
  });

  it.each([
    ['is replaced', { secret: randomUUID() }],
    ['is no superuser’s any more', { isSuperuser: false }],
  ])('a session ends when the secret that it began with %s', async (_, changes) => {
    const { id, clientId, secret } = await newSuperuser();
    const browser = new Browser(elsewhere());
    await signIn(browser, clientId, secret);
    expect(await isIn(browser)).toBe(true);
    const [hasEnded, watch] = [await listensWith(browser, origin), admin.api.app.get(SessionWatch)];
    await watch.look();
    expect(hasEnded()).toBe(false);
    await admin.api.app.get(ApplicationsService).update(id, changes);
    await watch.look();
    await eventually(hasEnded, 'its stream of events to end');
    expect(await isIn(browser)).toBe(false);
  });

  it('a ticket signs in one browser on this machine, once', async () => {
    const [browser, second] = [new Browser(), new Browser()];
    const { json: made } = await admin.post('/admin/v1/sign-in-tickets');
    const value = String(made.ticket);
    expect(made.url).toBe(`${origin}/console/enter?ticket=${value}`);
    const { url } = await browser.get(`${origin}/console/enter?ticket=${value}&to=alerts`);
    expect([url.pathname, await isIn(browser)]).toEqual(['/console/alerts', true]);
    const { user } = (await browser.get(`${origin}/console/session`)).json;
    expect(user).toEqual({ name: superuser.clientId, role: 'administrator', via: 'ticket' });
    const again = await second.get(`${origin}/console/enter?ticket=${value}`);
    expect([again.url.searchParams.get('error'), await isIn(second)]).toEqual(['ticket-refused', false]);
    const another = await browser.change('POST', `${origin}/admin/v1/sign-in-tickets`);
    expect([another.status, another.json.code]).toEqual([403, 'permission_denied']);
  });

  it('of two who use a ticket at once, one is signed in', async () => {
    const [browsers, value] = [[1, 2, 3].map(() => new Browser()), await ticket()];
    await Promise.all(browsers.map((browser) => browser.get(`${origin}/console/enter?ticket=${value}`)));
    expect((await Promise.all(browsers.map(isIn))).filter(Boolean)).toHaveLength(1);
  });

  it('a ticket signs in whoever sends wrong tokens and tickets through a proxy on this machine, and too many are not looked up', async () => {
    const time = admin.api.app.get(Clock);
    const minute = vi.spyOn(time, 'now').mockReturnValue(Math.floor(time.now() / 60_000) * 60_000);
    const failure = async (value: string, headers?: Record<string, string>) =>
      (await new Browser(headers).get(`${origin}/console/enter?ticket=${value}`)).url.searchParams.get('error');
    try {
      const value = await ticket();
      for (let call = 0; call < 25; call++) {
        await admin.api.get(`${origin}/admin/v1/channels`, { token: 'wrong' });
        // A proxy on this machine that says nothing of those before it but its name.
        expect(await failure(newToken(), { via: '1.1 proxy' })).toBe('ticket-refused');
        expect(await failure('nonsense')).toBe('ticket-refused');
      }
      expect(await failure(value)).toBeNull();
      const another = await ticket();
      for (let call = 0; call < 20; call++) await failure(newToken());
      expect(await failure(another)).toBe('throttled');
      minute.mockReturnValue(time.now() + 60_000);
      expect(await failure(another)).toBeNull();
    } finally {
      minute.mockRestore();
    }
  });

  const enterWith = async (value: string, headers?: Record<string, string>) => {
    const browser = new Browser(headers);
    const { url } = await browser.get(`${origin}/console/enter?ticket=${value}`);
    return { error: url.searchParams.get('error'), isIn: await isIn(browser) };
  };
  const refused = { error: 'ticket-refused', isIn: false };

  it('a ticket is refused through a proxy, and when its time is over', async () => {
    const value = await ticket();
    expect(await enterWith(value, elsewhere())).toEqual(refused);
    await admin.api.app
      .get(Postgres)
      .dataSource.query(`UPDATE sign_in_ticket SET expires_at = now() - interval '1 minute'`);
    expect(await enterWith(value)).toEqual(refused);
    expect(await enterWith('nonsense')).toEqual(refused);
  });

  it.each([
    ['is another since', { secret: randomUUID() }],
    ['is no superuser’s any more', { isSuperuser: false }],
  ])('a ticket is refused where the secret that it was made with %s', async (_, changes) => {
    const { id, ...credentials } = await newSuperuser();
    const value = await ticket(signToken(credentials));
    await admin.api.app.get(ApplicationsService).update(id, changes);
    expect(await enterWith(value)).toEqual(refused);
  });

  it('there is nothing to come back from', async () => {
    const browser = new Browser(elsewhere());
    const begun = { state: 'y', nonce: 'n', verifier: 'v', to: './' };
    browser.setCookie(host, 'heraut_sign_in', Buffer.from(JSON.stringify(begun)).toString('base64url'));
    const from = admin.api.logged.length;
    for (const each of [browser, new Browser(elsewhere())]) {
      const { url } = await each.get(`${origin}/console/callback?code=x&state=y`);
      expect(url.searchParams.get('error')).toBe('begin-again');
    }
    expect(admin.api.logged.slice(from).filter(({ event }) => event === 'request.failed')).toEqual([]);
  });
});
