import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.js';
import { originOf } from '../infra/http/origin.js';

/** `session`: the token. `sign_in`: what a browser that was sent to the provider has to show when it comes back. */
type Kind = 'session' | 'sign_in';

/** The provider leads back from its own site, and a browser sends a strict cookie only where the way began on ours. */
const sameSite: Record<Kind, string> = { session: 'Strict', sign_in: 'Lax' };

/** Where browsers reach the console, and the cookies that they get for it. */
export class ConsoleCookies {
  /** As CONSOLE_URL says. */
  private readonly url: URL | undefined;
  /** Above the console: the admin API needs the session as well. */
  private readonly path: string;

  constructor({ CONSOLE_URL }: Pick<Settings, 'CONSOLE_URL'>) {
    this.url = CONSOLE_URL === undefined ? undefined : new URL(CONSOLE_URL);
    this.path = this.url?.pathname.replace(/\/console$/, '') || '/';
  }

  /** Address of the console, without a slash at the end. */
  urlFor(request: FastifyRequest): string {
    return this.url?.href ?? `${originOf(request)}/console`;
  }

  /** @param origin as the header has it */
  isOwnOrigin(request: FastifyRequest, origin: string): boolean {
    if (origin === this.url?.origin) return true;
    // The scheme is not known behind a proxy that does not tell it.
    return URL.canParse(origin) && new URL(origin).host === request.host;
  }

  read(request: FastifyRequest, kind: Kind): string | undefined {
    const name = this.nameOf(request, kind);
    for (const pair of request.headers.cookie?.split(';') ?? []) {
      const [key, value] = pair.split('=', 2);
      if (key?.trim() === name) return value?.trim();
    }
    return undefined;
  }

  /** @param seconds not given: until the browser is closed */
  set(request: FastifyRequest, reply: FastifyReply, kind: Kind, value: string, seconds?: number): void {
    const parts = [
      `${this.nameOf(request, kind)}=${value}`,
      `Path=${this.path}`,
      'HttpOnly',
      `SameSite=${sameSite[kind]}`,
      ...(this.isSecure(request) ? ['Secure'] : []),
      ...(seconds === undefined ? [] : [`Max-Age=${seconds}`]),
    ];
    void reply.header('set-cookie', parts.join('; '));
  }

  remove(request: FastifyRequest, reply: FastifyReply, kind: Kind): void {
    this.set(request, reply, kind, '', 0);
  }

  /** The prefixes keep other hosts of the same domain from planting a cookie of theirs (RFC 6265bis §4.1.3). */
  private nameOf(request: FastifyRequest, kind: Kind): string {
    if (!this.isSecure(request)) return `heraut_${kind}`;
    return `${this.path === '/' ? '__Host-' : '__Secure-'}heraut_${kind}`;
  }

  private isSecure(request: FastifyRequest): boolean {
    return this.url ? this.url.protocol === 'https:' : request.protocol === 'https';
  }
}
