import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readSettings } from '../../src/config/settings.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { Provider } from '../../src/sessions/provider.openid-client.js';
import { AdminApi } from '../support/admin-api.js';
import { Browser } from '../support/browser.js';
import { IdentityProvider } from '../support/identity-provider.js';

const secondMs = 1000;

describe('where scopes, the claim with the roles and the length of sessions are configured', () => {
  let provider: IdentityProvider;
  let admin: AdminApi;
  let origin: string;
  let later = 0;

  beforeAll(async () => {
    provider = await IdentityProvider.start(() => [`${origin}/console/callback`]);
    admin = await AdminApi.start({
      ...provider.settings,
      ROLES: 'api',
      OIDC_SCOPES: 'openid groups',
      OIDC_ROLE_CLAIM: 'realm_access.groups',
      OIDC_ROLES: '{"viewer":["*"],"operator":["beheer","dienst"],"administrator":["platform"]}',
      SESSION_IDLE_SEC: '120',
      SESSION_MAX_SEC: '300',
    });
    ({ origin } = admin.api);
    const ledgerClock = admin.api.app.get(LedgerClock);
    const real = ledgerClock.now.bind(ledgerClock);
    ledgerClock.now = () => real() + later;
  });
  beforeEach(() => void (later = 0));
  afterAll(() => Promise.all([admin.close(), provider.stop()]));

  async function signIn(groups: string | string[]): Promise<{ browser: Browser; way: URL[] }> {
    // The scopes bring neither a name nor `roles`.
    provider.person = { sub: randomUUID(), name: 'Jan', roles: ['administrator'], realm_access: { groups } };
    const browser = new Browser();
    const { url, way } = await browser.get(`${origin}/console/begin`);
    expect(url.pathname).toBe('/console/');
    return { browser, way };
  }
  const whoIs = (browser: Browser) => browser.get(`${origin}/console/session`, { 'x-heraut-console': '0' });
  const lists = async (browser: Browser) => (await browser.get(`${origin}/admin/v1/channels`)).status;

  it.each([
    [[], 'viewer'],
    [['dienst', 'unknown'], 'operator'],
    ['beheer', 'operator'],
    [['beheer', 'platform'], 'administrator'],
  ])('the provider is asked for those scopes, and groups %j make a user %s', async (groups, role) => {
    const { browser, way } = await signIn(groups);
    expect(way.find((each) => each.origin === provider.issuer)!.searchParams.get('scope')).toBe('openid groups');
    expect((await whoIs(browser)).json).toMatchObject({ user: { role, via: 'oidc' } });
  });

  it('a session ends when it is not used for that long', async () => {
    const { browser } = await signIn('beheer');
    later = 110 * secondMs;
    expect((await whoIs(browser)).status).toBe(200);
    later = 121 * secondMs;
    expect((await whoIs(browser)).status).toBe(401);
  });

  it('a session ends after its longest time, however much it is used', async () => {
    const { browser } = await signIn('beheer');
    for (const seconds of [60, 120, 180, 240, 290]) {
      later = seconds * secondMs;
      expect(await lists(browser)).toBe(200);
    }
    later = 301 * secondMs;
    expect(await lists(browser)).toBe(401);
  });
});

describe('the secret of Heraut is sent to a provider of OpenID Connect', () => {
  const [basic, post] = ['client_secret_basic', 'client_secret_post'];
  const redirectUri = 'http://localhost:1/console/callback';

  it.each([
    ['as the standard has it, where that says nothing of it', { method: basic }, {}],
    ['as the standard has it, where that says null', { methods: null, method: basic }, {}],
    ['as that says', { methods: ['private_key_jwt', basic], method: basic }, {}],
    ['as that says', { methods: [post], method: post }, {}],
    ['in the body, where that takes both', { methods: [basic, post], method: post }, {}],
    ['as the settings say', { methods: [basic, post], method: basic }, { OIDC_CLIENT_AUTH: 'basic' }],
    ['as the settings say', { method: post }, { OIDC_CLIENT_AUTH: 'post' }],
    ['as the settings say', { methods: null, method: post }, { OIDC_CLIENT_AUTH: 'post' }],
  ])('%s: %j %j', async (_, authentication, settings) => {
    const server = await IdentityProvider.start(() => [redirectUri], authentication);
    server.person = { sub: 'jan', name: 'Jan', roles: ['viewer'] };
    const provider = new Provider(readSettings({ ...server.settings, ...settings }), { now: () => 0 } as LedgerClock);
    try {
      const { url, begun } = await provider.begin(redirectUri, false);
      const browser = new Browser();
      let at = url;
      while (at.origin === server.issuer) {
        const { headers } = await browser.fetch('GET', at);
        at = new URL(headers.get('location')!, at);
      }
      expect(await provider.finish(at, begun)).toMatchObject({ sub: 'jan' });
    } finally {
      await Promise.all([provider.close(), server.stop()]);
    }
  });
});
