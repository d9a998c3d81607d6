import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

export interface Person {
  sub: string;
  name?: string;
  email?: string;
  preferred_username?: string;
  roles?: string[];
  /** Of the scope `groups`. */
  realm_access?: { groups: string | string[] };
}

interface GrantContext {
  oidc: {
    account: { accountId: string };
    client: { clientId: string };
    provider: {
      Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
    };
  };
}

const client = { id: 'heraut', secret: 'the secret of Heraut at the provider' };

/**
 * A provider of OpenID Connect that asks nobody for a password: whoever comes is the person that the test has chosen.
 */
export class IdentityProvider {
  /** undefined: they say no. */
  person: Person | undefined;
  /** It answers nothing but errors. */
  isAway = false;
  /** Values of `prompt` in the requests for a sign-in. */
  readonly prompts: (string | undefined)[] = [];
  /** How often it was asked what a code is good for. */
  codes = 0;
  private readonly people = new Map<string, Person>();

  private constructor(
    private readonly server: Server,
    readonly issuer: string,
  ) {}

  /**
   * @param redirectUris that Heraut may have browsers led back to; given once they are known
   * @param authentication by `method`, and no other way, of Heraut; its metadata say `methods`, or nothing of it
   */
  static async start(
    redirectUris: () => string[],
    authentication: { methods?: string[] | null; method: string } = {
      methods: ['client_secret_basic', 'client_secret_post'],
      method: 'client_secret_post',
    },
  ): Promise<IdentityProvider> {
    const server = createServer();
    await once(server.listen(0, 'localhost'), 'listening');
    const provider = new IdentityProvider(server, `http://localhost:${(server.address() as AddressInfo).port}`);
    let handle: ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined;
    server.on(
      'request',
      (request, response) => void (handle ??= provider.serve(redirectUris(), authentication))(request, response),
    );
    return provider;
  }

  /** Of Heraut. */
  get settings(): Record<string, string> {
    return { OIDC_ISSUER: this.issuer, OIDC_CLIENT_ID: client.id, OIDC_CLIENT_SECRET: client.secret };
  }

  stop(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private serve(
    redirectUris: string[],
    { methods, method }: { methods?: string[] | null; method: string },
  ): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: client.id,
          client_secret: client.secret,
          redirect_uris: redirectUris,
          token_endpoint_auth_method: method,
          id_token_signed_response_alg: 'ES256',
        },
      ],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] },
      cookies: { keys: ['of the provider'] },
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      claims: {
        openid: ['sub'],
        profile: ['name', 'preferred_username', 'roles'],
        email: ['email'],
        groups: ['realm_access'],
      },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => this.people.get(id) }),
      loadExistingGrant: async ({ oidc }: GrantContext) => {
        const grant = new oidc.provider.Grant({ accountId: oidc.account.accountId, clientId: oidc.client.clientId });
        grant.addOIDCScope('openid profile email groups');
        await grant.save();
        return grant;
      },
    });
    provider.use(async (context, next) => {
      await next();
      if (context.path === '/.well-known/openid-configuration')
        Object.assign(context.body, { token_endpoint_auth_methods_supported: methods });
    });
    const callback = provider.callback();
    return async (request, response) => {
      if (request.url === '/token') this.codes++;
      if (this.isAway) return void response.writeHead(503).end('away');
      // The package takes either of both, whatever the client has.
      if (request.url === '/token' && 'authorization' in request.headers !== (method === 'client_secret_basic'))
        return void response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
      if (!request.url!.startsWith('/interaction/')) return callback(request, response);
      const { params } = await provider.interactionDetails(request, response);
      this.prompts.push(params.prompt);
      const { person } = this;
      if (person) this.people.set(person.sub, person);
      const result = person ? { login: { accountId: person.sub } } : { error: 'access_denied' };
      await provider.interactionFinished(request, response, result);
    };
  }
}
