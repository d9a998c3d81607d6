import type { FastifyInstance } from 'fastify';
import { MethodProblem } from './problem.js';

/**
 * Answers the methods that a path does not have: OPTIONS with those it has, the rest with 405. A path without any method
 * stays a 404. Runs only where no route was found.
 */
export function answerOtherMethods(server: FastifyInstance): void {
  const methodsOf = new Map<string, Set<string>>();
  server.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    methodsOf.set(url, methods);
  });

  let routes: { pattern: RegExp; methods: Set<string> }[] = [];
  server.addHook('onReady', (done) => {
    routes = [...methodsOf].map(([url, methods]) => ({ pattern: patternOf(url), methods }));
    done();
  });

  server.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    const path = request.url.split('?', 1)[0]!;
    const methods = new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap((route) => [...route.methods]));
    if (methods.size === 0) return done();
    const allow = [...methods, 'OPTIONS'].sort().join(', ');
    if (request.method === 'OPTIONS') {
      void reply.status(204).header('allow', allow).send();
      return;
    }
    done(new MethodProblem(request.method, allow));
  });
}

/** A route as the router writes it (`/people/:id`, `/files/*`) as a pattern over paths. */
function patternOf(url: string): RegExp {
  const source = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[^/]+/g, '[^/]+')
    .replaceAll('*', '.*');
  return new RegExp(`^${source}$`);
}
