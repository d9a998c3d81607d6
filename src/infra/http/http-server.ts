import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Settings } from '../../config/settings.js';
import { AcceptJsonGuard } from './accept-json.guard.js';
import { AdminServer } from './admin-server.js';
import { AllowedHosts } from './allowed-hosts.js';
import { BodyRoom } from './body-room.js';
import { answerBroken } from './broken-requests.js';
import { Cors } from './cors.js';
import type { Dialect } from './dialect.js';
import { tellOfIgnoredForwarding } from './ignored-forwarding.js';
import { JsonBodyPipe } from './json-body.pipe.js';
import { LatestAnswers } from './latest-answers.js';
import { serveMetrics } from './metrics.js';
import { OtherMethods } from './other-methods.js';
import { originFormOf } from './origin-form.js';
import { NotFoundProblem } from './problem.js';
import { ProblemFilter } from './problem.filter.js';
import { closeQueuedAnswers } from './queued-answers.js';
import { bodyReader } from './read-body.js';
import { refusalOf } from './refused-requests.js';
import { responseWith } from './response-with-headers.js';
import { keptByCallerAlone, securityHeaders } from './security-headers.js';
import { cutSlowReaders, LateLooks, serverOptions, timeLimits, type TimeLimits } from './slow-callers.js';

export interface ServerOptions {
  settings: Settings;
  dialect: Dialect;
  /**
   * Whether a route is served at all, by its pattern; every other is answered as if it were not there. Not given: all
   * are.
   */
  isServed?: ((route: string) => boolean) | undefined;
  /** The text for `/metrics`. */
  metrics: () => Promise<string>;
  /** Shorter, for tests. */
  limits?: TimeLimits;
}

/** Pass to `NestFactory.create` together with `{ bodyParser: false }`, then call `useHttpRules` on the application. */
export function createHttpAdapter(options: ServerOptions): FastifyAdapter {
  const { settings, dialect, limits = timeLimits } = options;
  const filter = new ProblemFilter(dialect);
  const cors = settings.CORS_ALLOWED_ORIGINS.length > 0 ? new Cors(settings.CORS_ALLOWED_ORIGINS) : undefined;
  const answers = new LatestAnswers((error, socket) => answerBroken(error, socket, filter, limits.lastAnswer));
  const late = new LateLooks(limits, answers.refuseInTurn);
  const nodeOptions = {
    ...serverOptions(limits),
    ServerResponse: responseWith((request) => {
      const { url = '', headers } = request;
      const always = [...dialect.headersOf(url), ...securityHeaders, ...keptByCallerAlone];
      if (answers.endsConnection(request)) always.push('connection', 'close');
      return cors ? [...always, ...cors.headersOf(headers)] : always;
    }),
  };
  const adapter = new FastifyAdapter({
    bodyLimit: settings.BODY_LIMIT_BYTES,
    // Of a chain of proxies only the nearest is known: what the others say could be of a caller's making.
    trustProxy: settings.TRUST_FORWARDED_HEADERS ? (_address: string, hop: number) => hop === 0 : false,
    requestTimeout: limits.request,
    keepAliveTimeout: settings.KEEP_ALIVE_SEC * 1000,
    // A start that takes long because the machine is busy goes on; Fastify would end it after ten seconds.
    pluginTimeout: 0,
    // A request that comes while the server is closing is still answered: what it needs is closed later. Fastify's own
    // 503 would be no problem document.
    return503OnClosing: false,
    // There is no Nest middleware; the package that would run it costs time on every request.
    skipMiddie: true,
    http: nodeOptions,
    rewriteUrl: ({ url = '' }) => originFormOf(url),
    // As long as a URL can be at all: whoever reads a parameter refuses one that is too long, in the way its document
    // says.
    routerOptions: { maxParamLength: 16_384 },
    // For requests that the router refuses before a route is found: no hook runs, and Nest does not see them.
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      filter.answer(refusalOf(request) ?? error, request, reply);
    },
    clientErrorHandler: late.judge,
  });
  prepare(adapter.getInstance<FastifyInstance>(), options, { filter, cors, answers, late, nodeOptions });
  return adapter;
}

interface Parts {
  filter: ProblemFilter;
  cors: Cors | undefined;
  answers: LatestAnswers;
  late: LateLooks;
  nodeOptions: ConstructorParameters<typeof AdminServer>[2];
}

/** Beside the routes, which Nest adds later. */
function prepare(
  server: FastifyInstance,
  { settings, isServed, metrics, limits = timeLimits }: ServerOptions,
  { filter, cors, answers, late, nodeOptions }: Parts,
): void {
  server.decorate('problems', filter);
  server.decorate('answers', answers);
  const bodies = new BodyRoom(settings.BODY_LIMIT_BYTES);
  server.decorate('bodies', bodies);
  server.decorate('allowedHosts', new AllowedHosts(settings.ALLOWED_HOSTS));
  server.decorate('pathPrefix', settings.PATH_PREFIX);
  const admin = settings.ADMIN_PORT === undefined ? undefined : new AdminServer(server, settings, nodeOptions);
  const serves = (route: string, request: FastifyRequest): boolean =>
    (isServed?.(route) ?? true) && (admin?.serves(route, request) ?? true);
  const servesAll = !isServed && !admin;
  const otherMethods = new OtherMethods(server, serves, cors);
  let mayIgnoreForwarding = !settings.TRUST_FORWARDED_HEADERS;
  server.addHook('onRequest', (request, reply, done) => {
    const refusal = refusalOf(request);
    if (refusal) return done(refusal);
    if (mayIgnoreForwarding) mayIgnoreForwarding = !tellOfIgnoredForwarding(request);
    if (request.is404) return otherMethods.answer(request, reply, done);
    bodies.expect(request, reply);
    // Fastify makes the options of a route anew for each look at them.
    done(servesAll || serves(request.routeOptions.url ?? '', request) ? undefined : new NotFoundProblem());
  });
  for (const each of admin ? [server.server, admin.server] : [server.server]) {
    // For the audit log, when the caller has left by then: Node keeps an address that was read while it was connected.
    each.on('connection', ({ remoteAddress }) => void remoteAddress);
    // An `Expect` that Node does not know reaches no route without this listener.
    each.on('checkExpectation', (request, response) => server.routing(request, response));
    if (each !== server.server) each.on('clientError', (error, socket) => late.judge(error, socket as Socket));
    cutSlowReaders(each, limits);
    closeQueuedAnswers(each);
    answers.watch(each);
    late.watch(each);
    letConnectionsGo(server, each);
  }
  serveMetrics(server, metrics);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', bodyReader(settings.BODY_LIMIT_BYTES, bodies));
}

/** Rules of every controller: JSON in, JSON out, errors as problems. */
export function useHttpRules(app: NestFastifyApplication): void {
  app.useGlobalGuards(new AcceptJsonGuard());
  app.useGlobalPipes(new JsonBodyPipe());
  app.useGlobalFilters(app.getHttpAdapter().getInstance().problems);
}

/**
 * For requests that are not complete yet. Together with the longest request in flight it is less than stopping may
 * take.
 */
const lastRequestsMs = 2000;
const lookForIdleMs = 50;

/**
 * A connection that is busy when the server begins to close is idle afterwards, and the server would wait until its
 * caller closes it, for up to KEEP_ALIVE_SEC.
 */
function letConnectionsGo(fastify: FastifyInstance, server: Server): void {
  fastify.addHook('preClose', (done) => {
    const giveUpAt = performance.now() + lastRequestsMs;
    const closing = setInterval(() => {
      if (performance.now() < giveUpAt) server.closeIdleConnections();
      else server.closeAllConnections();
    }, lookForIdleMs).unref();
    server.once('close', () => clearInterval(closing));
    done();
  });
}
