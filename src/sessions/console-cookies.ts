import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WayIn } from '../auth/user-sessions.js';
import type { Settings } from '../config/settings.js';
import { baseUrlOf } from '../infra/http/origin.js';
import { isFromHere } from '../infra/http/from-here.js';

/**
 * `session`: the token. `session_here`: that of a browser on this machine which passes by CONSOLE_URL, and would
 * neither keep nor send a cookie for that address. `sign_in`: what a browser that was sent to the provider has to show
 * when it comes back.
 */
type Kind = 'session' | 'session_here' | 'sign_in';

/** The provider leads back from its own site, and a browser sends a strict cookie only where the way began on ours. */
const sameSite: Record<Kind, string> = { session: 'Strict', session_here: 'Strict', sign_in: 'Lax' };

/** Where browsers reach the console, and the cookies that they get for it. */
export class ConsoleCookies {
  /** As CONSOLE_URL says. */
  private readonly url: URL | undefined;
  /** Above the console: the admin API needs the session as well. */
  private readonly path: string;
  /**
   * Behind the names: each installation below one host has its own. Not the path: with PATH_PREFIX alone a browser may
   * pass by the proxy, and would send nothing for that path.
   */
  private readonly suffix: string;

  constructor({ CONSOLE_URL, PATH_PREFIX }: Pick<Settings, 'CONSOLE_URL' | 'PATH_PREFIX'>) {
    this.url = CONSOLE_URL === undefined ? undefined : new URL(CONSOLE_URL);
    this.path = this.url?.pathname.replace(/\/console$/, '') || '/';
    this.suffix = this.url ? '' : PATH_PREFIX.replaceAll('/', '.');
  }

  /** Address of the console, without a slash at the end. */
  urlFor(request: FastifyRequest): string {
    return this.url?.href ?? `${baseUrlOf(request)}/console`;
  }

  /** @param origin as the header has it */
  isOwnOrigin(request: FastifyRequest, origin: string): boolean {
    if (origin === this.url?.origin) return true;
    // The scheme is not known behind a proxy that does not tell it.
    return URL.canParse(origin) && new URL(origin).host === request.host;
  }

  /** The token of the session of a browser; undefined: it has none. */
  readToken(request: FastifyRequest): string | undefined {
    return this.read(request, 'session') ?? (isFromHere(request) ? this.read(request, 'session_here') : undefined);
  }

  /**
   * @param via how its user has signed in. The provider leads back to CONSOLE_URL
   */
  setToken(request: FastifyRequest, reply: FastifyReply, token: string, via: WayIn): void {
    const [kind, other] =
      this.url && (via === 'ticket' || (via === 'password' && this.passesBy(request, this.url)))
        ? (['session_here', 'session'] as const)
        : (['session', 'session_here'] as const);
    if (this.read(request, other) !== undefined) this.remove(request, reply, other);
    this.set(request, reply, kind, token);
  }

  /** Whether a browser on this machine came by another address, such as that of a tunnel. */
  private passesBy(request: FastifyRequest, { host, origin }: URL): boolean {
    // A proxy on this machine that tells nothing may have put a host of its own in the place of that one.
    return isFromHere(request) && request.host !== host && request.headers.origin !== origin;
  }

  removeToken(request: FastifyRequest, reply: FastifyReply): void {
    for (const kind of ['session', 'session_here'] as const)
      if (this.read(request, kind) !== undefined) this.remove(request, reply, kind);
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
      `Path=${this.pathFor(kind)}`,
      'HttpOnly',
      `SameSite=${sameSite[kind]}`,
      ...(this.isSecure(request, kind) ? ['Secure'] : []),
      ...(seconds === undefined ? [] : [`Max-Age=${seconds}`]),
    ];
    void reply.header('set-cookie', parts.join('; '));
  }

  remove(request: FastifyRequest, reply: FastifyReply, kind: Kind): void {
    this.set(request, reply, kind, '', 0);
  }

  /** The prefixes keep other hosts of the same domain from planting a cookie of theirs (RFC 6265bis §4.1.3). */
  private nameOf(request: FastifyRequest, kind: Kind): string {
    const name = `heraut_${kind}${this.suffix}`;
    if (!this.isSecure(request, kind)) return name;
    return `${this.pathFor(kind) === '/' ? '__Host-' : '__Secure-'}${name}`;
  }

  private pathFor(kind: Kind): string {
    return kind === 'session_here' ? '/' : this.path;
  }

  private isSecure(request: FastifyRequest, kind: Kind): boolean {
    return this.url && kind !== 'session_here' ? this.url.protocol === 'https:' : request.protocol === 'https';
  }
}
