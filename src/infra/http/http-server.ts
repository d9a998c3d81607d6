import type { INestApplication } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import type { Settings } from '../../config/settings.js';
import { AcceptJsonGuard } from './accept-json.guard.js';
import type { Dialect } from './dialect.js';
import { JsonBodyPipe, UnparsedBody } from './json-body.pipe.js';
import { serveMetrics } from './metrics.js';
import { answerOtherMethods } from './other-methods.js';
import {
  ExpectationProblem,
  HeadersTooLargeProblem,
  NotFoundProblem,
  ParseProblem,
  type ProblemError,
} from './problem.js';
import { ProblemFilter } from './problem.filter.js';

export interface ServerOptions {
  settings: Pick<Settings, 'BODY_LIMIT_BYTES' | 'TRUST_FORWARDED_HEADERS'>;
  dialect: Dialect;
  /** Whether a route is served at all, by its pattern; every other is answered as if it were not there. */
  isServed: (route: string) => boolean;
  /** The text for `/metrics`. */
  metrics: () => Promise<string>;
}

/** Pass to `NestFactory.create` together with `{ bodyParser: false }`, then call `useHttpRules` on the application. */
export function createHttpAdapter({ settings, dialect, isServed, metrics }: ServerOptions): FastifyAdapter {
  const filter = new ProblemFilter(dialect);
  const setHeaders = (request: FastifyRequest, reply: FastifyReply) => {
    // On the raw response, because Fastify writes its own header names in lower case.
    for (const [name, value] of dialect.headersOf(request.url)) reply.raw.setHeader(name, value);
  };
  const adapter = new FastifyAdapter({
    bodyLimit: settings.BODY_LIMIT_BYTES,
    trustProxy: settings.TRUST_FORWARDED_HEADERS,
    // A caller that sends its request this slowly only occupies a connection.
    requestTimeout: 30_000,
    // A request that comes while the server is closing is still answered: what it needs is closed later. Fastify's own
    // 503 would be no problem document.
    return503OnClosing: false,
    // There is no Nest middleware; the package that would run it costs time on every request.
    skipMiddie: true,
    // Node would refuse a request without a Host itself, with an empty body; `brokenHeader` finds it instead.
    http: { requireHostHeader: false },
    // As long as a URL can be at all: whoever reads a parameter refuses one that is too long, in the way its document says.
    routerOptions: { maxParamLength: 16_384 },
    // For requests that the router refuses before a route is found: no hook runs, and Nest does not see them.
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      setHeaders(request, reply);
      filter.answer(error, request, reply);
    },
    clientErrorHandler(error, socket) {
      if (!socket.writable) return void socket.destroy();
      const origin = `http://${socket.localAddress ?? 'localhost'}:${socket.localPort ?? 80}`;
      socket.end(malformedAnswer(error, (problem) => filter.write(problem, origin, {})));
    },
  });
  const server = adapter.getInstance<FastifyInstance>();
  server.addHook('onRequest', (request, reply, done) => {
    setHeaders(request, reply);
    done(brokenHeader(request) ?? (isServed(request.routeOptions.url ?? '') ? undefined : new NotFoundProblem()));
  });
  // An `Expect` that Node does not know reaches no route without this listener.
  server.server.on('checkExpectation', (request, response) => server.routing(request, response));
  letConnectionsGo(server);
  answerOtherMethods(server);
  serveMetrics(server, metrics);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, new UnparsedBody(request.headers['content-type'], request.headers['content-encoding'], bytes));
  });
  return adapter;
}

/** Rules of every controller: JSON in, JSON out, errors as problems. */
export function useHttpRules(app: INestApplication, dialect: Dialect): void {
  app.useGlobalGuards(new AcceptJsonGuard());
  app.useGlobalPipes(new JsonBodyPipe());
  app.useGlobalFilters(new ProblemFilter(dialect));
}

/** Node's own pattern for the one expectation that it meets. */
const continueExpected = /(?:^|\W)100-continue(?:$|\W)/i;

/** The rule of HTTP/1.1 that the headers break. Node would answer these requests itself, with an empty body. */
function brokenHeader({ headers, raw }: FastifyRequest): ProblemError | undefined {
  if (raw.httpVersion !== '1.1') return undefined; // HTTP/1.0 has neither header
  // RFC 9112 §3.2.
  if (headers.host === undefined) return new ParseProblem('The request has no Host.');
  // RFC 9110 §10.1.1.
  const isMet = headers.expect === undefined || continueExpected.test(headers.expect);
  return isMet ? undefined : new ExpectationProblem();
}

/** For requests that are not complete yet. Together with the longest request in flight it is less than stopping may take. */
const lastRequestsMs = 2000;
const lookForIdleMs = 50;

/**
 * A connection that is busy when the server begins to close is idle afterwards, and the server would wait until its caller closes
 * it, for up to 72 s.
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

/** The answer to bytes that are not HTTP, for which there is no request object. */
function malformedAnswer(error: Error & { code?: string }, write: (problem: ProblemError) => string): string {
  const problem =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new HeadersTooLargeProblem()
      : new ParseProblem('The request is not HTTP, or took too long to arrive.');
  const body = write(problem);
  return [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
