import * as client from 'openid-client';
import { Agent, fetch } from 'undici';
import type { Settings } from '../config/settings.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Outbound } from '../outbound/outbound.service.js';
import type { Claims } from './read-claims.js';
import { SignInFailed } from './sign-in-failed.js';

const timeoutSeconds = 10;
/** Between the clock of the provider and that of Postgres. */
const differenceSeconds = 30;
/** Endpoints of a provider move, and a start of Heraut should not be needed for that. */
const knownMs = 3_600_000;

/** The browser brings these back when the provider has sent it back. */
export interface BegunSignIn {
  state: string;
  nonce: string;
  verifier: string;
}

/** The provider of OpenID Connect that the settings name: authorization code with PKCE, state and nonce. */
export class Provider {
  private known: { configuration: Promise<client.Configuration>; at: number; skewSeconds: number } | undefined;
  private readonly agent: Agent;

  constructor(
    private readonly settings: Settings,
    private readonly ledgerClock: LedgerClock,
  ) {
    // As with the webhook of alerts: the operator has named it, so it may be on a private network.
    const outbound = new Outbound({
      ...settings,
      CALLBACK_NETWORKS: 'any',
      CALLBACK_ALLOWED_NETWORKS: [],
      CALLBACK_SCHEMES: ['http', 'https'],
      CALLBACK_PORTS: undefined,
    });
    this.agent = new Agent({ connect: outbound.connectorFor({}, timeoutSeconds * 1000), keepAliveTimeout: 1000 });
  }

  close(): Promise<void> {
    return this.agent.destroy();
  }

  /**
   * @param asksAgain the provider is to ask for the password, also where it knows the browser
   * @throws {SignInFailed}
   */
  async begin(redirectUri: string, asksAgain: boolean): Promise<{ url: URL; begun: BegunSignIn }> {
    const configuration = await this.configuration();
    const begun = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
    };
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.settings.OIDC_SCOPES,
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: 'S256',
      ...(asksAgain ? { prompt: 'login' } : {}),
    });
    return { url, begun };
  }

  /**
   * The provider's claims about the user who came back.
   * @param callback the address that the browser was led to, with its query
   * @throws {SignInFailed}
   */
  async finish(callback: URL, { state, nonce, verifier }: BegunSignIn): Promise<Claims> {
    const configuration = await this.configuration();
    try {
      const tokens = await client.authorizationCodeGrant(configuration, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims()!;
      if (!configuration.serverMetadata().userinfo_endpoint || this.saysAll(claims)) return claims;
      // Many providers say there what they leave out of the token. The signed claims go before these.
      const more = await client.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return { ...more, ...claims };
    } catch (error) {
      throw new SignInFailed(reasonOf(error), { cause: error });
    }
  }

  private saysAll(claims: Claims): boolean {
    const [role] = this.settings.OIDC_ROLE_CLAIM.split('.');
    return 'name' in claims && (this.settings.OIDC_ROLE_CLAIM in claims || role! in claims);
  }

  /** Its description of itself, asked for at the first sign-in. One that did not answer is asked again. */
  private async configuration(): Promise<client.Configuration> {
    const now = this.ledgerClock.now();
    // The library goes by the machine's clock, and times of tokens are judged by that of Postgres.
    const skewSeconds = Math.round((now - Date.now()) / 1000);
    const isKnown =
      this.known &&
      now - this.known.at <= knownMs &&
      Math.abs(skewSeconds - this.known.skewSeconds) < differenceSeconds;
    if (!isKnown) this.known = { configuration: this.discover(skewSeconds), at: now, skewSeconds };
    const { configuration } = this.known!;
    try {
      return await configuration;
    } catch (error) {
      if (this.known?.configuration === configuration) this.known = undefined;
      throw new SignInFailed('provider-unavailable', { cause: error });
    }
  }

  private discover(skewSeconds: number): Promise<client.Configuration> {
    const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_CLIENT_AUTH } = this.settings;
    const issuer = new URL(OIDC_ISSUER!);
    const call = (url: string, options: object) => fetch(url, { ...options, dispatcher: this.agent });
    return client.discovery(
      issuer,
      OIDC_CLIENT_ID!,
      {
        client_secret: OIDC_CLIENT_SECRET!,
        [client.clockTolerance]: differenceSeconds,
        [client.clockSkew]: skewSeconds,
      },
      (server, ...rest) => authenticationAt(server, OIDC_CLIENT_AUTH)(server, ...rest),
      {
        timeout: timeoutSeconds,
        // The types of undici are stricter than those of the browser's fetch.
        [client.customFetch]: call as unknown as client.CustomFetch,
        // The settings allow http for this machine alone.
        execute: issuer.protocol === 'http:' ? [client.allowInsecureRequests] : [],
      },
    );
  }
}

/** The way in which the secret is sent to the provider. */
function authenticationAt(
  { token_endpoint_auth_methods_supported: known }: client.ServerMetadata,
  wanted: Settings['OIDC_CLIENT_AUTH'],
): client.ClientAuth {
  const way = wanted === 'auto' ? wayOf(known) : wanted;
  return way === 'basic' ? client.ClientSecretBasic() : client.ClientSecretPost();
}

/** @param known as a provider says, which is not as the standard has it everywhere */
function wayOf(known: unknown): 'basic' | 'post' {
  // By the standard, one that says nothing takes Basic. Of both, post works also with a secret that one reads otherwise
  // in Basic than it was meant.
  if (!Array.isArray(known)) return 'basic';
  return known.includes('client_secret_basic') && !known.includes('client_secret_post') ? 'basic' : 'post';
}

function reasonOf(error: unknown): SignInFailed['reason'] {
  if (error instanceof client.AuthorizationResponseError) {
    return ['server_error', 'temporarily_unavailable'].includes(error.error) ? 'provider-unavailable' : 'denied';
  }
  // The code was used before, or is too old.
  if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return 'begin-again';
  return 'provider-unavailable';
}
