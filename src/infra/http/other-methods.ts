import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Cors } from './cors.js';
import { MethodProblem, NotFoundProblem } from './problem.js';

interface Route {
  url: string;
  pattern: RegExp;
  methods: Set<string>;
}

/**
 * Answers the methods that a path does not have: OPTIONS with those it has, the rest with 405. A path without any
 * method is a 404, at once: Fastify would read the body first. Runs only where no route was found. It must be made
 * before the routes are.
 */
export class OtherMethods {
  private routes: Route[] = [];

  /** @param isServed whether the route, by its pattern, is served to this request */
  constructor(
    server: FastifyInstance,
    private readonly isServed: (route: string, request: FastifyRequest) => boolean,
    private readonly cors: Cors | undefined,
  ) {
    const methodsOf = new Map<string, Set<string>>();
    server.addHook('onRoute', ({ url, method }) => {
      const methods = methodsOf.get(url) ?? new Set();
      for (const name of [method].flat()) methods.add(name);
      methodsOf.set(url, methods);
    });
    server.addHook('onReady', (done) => {
      this.routes = [...methodsOf].map(([url, methods]) => ({ url, pattern: patternOf(url), methods }));
      done();
    });
  }

  answer(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    const path = request.url.split('?', 1)[0]!;
    // RFC 9110 §9.3.7: `OPTIONS *` asks for the server as a whole.
    const fitting = this.routes.filter(
      ({ url, pattern }) => (path === '*' || pattern.test(path)) && this.isServed(url, request),
    );
    const methods = new Set(fitting.flatMap((route) => [...route.methods]));
    if (methods.size === 0) return done(new NotFoundProblem());
    const allow = [...methods, 'OPTIONS'].sort().join(', ');
    if (request.method !== 'OPTIONS') return done(new MethodProblem(request.method, allow));
    const headers = { allow, ...this.cors?.preflightHeadersOf(request.headers, allow) };
    void reply.status(204).headers(headers).send();
  }
}

/** A route as the router writes it (`/people/:id`, `/files/*`) as a pattern over paths. */
function patternOf(url: string): RegExp {
  const source = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[^/]+/g, '[^/]+')
    .replaceAll('*', '.*');
  return new RegExp(`^${source}$`);
}
