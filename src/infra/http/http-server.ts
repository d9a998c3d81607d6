import type { INestApplication } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Settings } from '../../config/settings.js';
import { AcceptJsonGuard } from './accept-json.guard.js';
import { JsonBodyPipe, UnparsedBody } from './json-body.pipe.js';
import { serveMetrics } from './metrics.js';
import { answerOtherMethods } from './other-methods.js';
import { HeadersTooLargeProblem, NotFoundProblem, ParseProblem } from './problem.js';
import { serveProblemPages } from './problem-pages.js';
import { problemText, ProblemFilter } from './problem.filter.js';

/** Pass to `NestFactory.create` together with `{ bodyParser: false }`, then call `useHttpRules` on the application. */
export function createHttpAdapter(settings: Settings): FastifyAdapter {
  const filter = new ProblemFilter();
  const adapter = new FastifyAdapter({
    bodyLimit: settings.BODY_LIMIT_BYTES,
    trustProxy: settings.TRUST_FORWARDED_HEADERS,
    // A caller that sends its request this slowly only holds a connection.
    requestTimeout: 30_000,
    // Who still asks while the server is closing gets its answer, for nothing it needs is closed before; Fastify's own 503 would be
    // no problem document.
    return503OnClosing: false,
    // There is no Nest middleware; the package that would run it costs time on every request.
    skipMiddie: true,
    // The key of a PUT may have 255 characters, each as three once encoded; by default a parameter ends at 100.
    routerOptions: { maxParamLength: 765 },
    // What the router refuses before a route is found: no hook runs, Nest sees nothing of it.
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      nameApiVersion(request, reply);
      filter.answer(error, request, reply);
    },
    clientErrorHandler(error, socket) {
      const bytes = malformedAnswer(error, `http://${socket.localAddress ?? 'localhost'}:${socket.localPort ?? 80}`);
      if (socket.writable) socket.end(bytes);
      else socket.destroy();
    },
  });
  const server = adapter.getInstance<FastifyInstance>();
  server.addHook('onRequest', (request, reply, done) => {
    nameApiVersion(request, reply);
    done();
  });
  letConnectionsGo(server);
  if (!settings.ROLES.includes('api')) serveOnlyOperators(server);
  answerOtherMethods(server);
  serveProblemPages(server);
  serveMetrics(server);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, new UnparsedBody(request.headers['content-type'], request.headers['content-encoding'], bytes));
  });
  return adapter;
}

/** A process without the role `api` listens for those who watch it, and for nobody else. */
function serveOnlyOperators(server: FastifyInstance): void {
  server.addHook('onRequest', (request, _reply, done) => {
    const { url = '' } = request.routeOptions;
    done(url.startsWith('/health/') || url === '/metrics' ? undefined : new NotFoundProblem());
  });
}

/** What holds for every controller: JSON in, JSON out, errors as problems. */
export function useHttpRules(app: INestApplication): void {
  app.useGlobalGuards(new AcceptJsonGuard());
  app.useGlobalPipes(new JsonBodyPipe());
  app.useGlobalFilters(new ProblemFilter());
}

/** Beyond this, who has not finished its request will not. Added to the worker's own time it is less than stopping may take. */
const lastRequestsMs = 2000;
const lookForIdleMs = 50;

/**
 * A connection that is busy when the server begins to close is idle afterwards, and the server would wait until its caller lets
 * go of it, for up to 72 s.
 */
function letConnectionsGo(server: FastifyInstance): void {
  server.addHook('preClose', (done) => {
    const giveUpAt = performance.now() + lastRequestsMs;
    const closing = setInterval(() => {
      if (performance.now() < giveUpAt) server.server.closeIdleConnections();
      else server.server.closeAllConnections();
    }, lookForIdleMs).unref();
    server.server.once('close', () => clearInterval(closing));
    done();
  });
}

const apiVersion = '1.0.1';

/** On the raw response, because Fastify writes its own header names in lower case and the standard spells this one. */
function nameApiVersion(request: FastifyRequest, reply: FastifyReply): void {
  if (request.url.startsWith('/api/v1')) reply.raw.setHeader('API-version', apiVersion);
}

/** The answer to what is not even HTTP; there is no request object to answer to. */
function malformedAnswer(error: Error & { code?: string }, origin: string): string {
  const problem =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new HeadersTooLargeProblem()
      : new ParseProblem('The request is not HTTP, or took too long to arrive.');
  const body = problemText(problem, `urn:uuid:${randomUUID()}`, origin);
  return [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
