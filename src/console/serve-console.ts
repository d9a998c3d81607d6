import fastifyStatic from '@fastify/static';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { NotFoundProblem, UnavailableProblem } from '../infra/http/problem.js';
import { pageFor, pagePolicy } from './page.js';

/** The built console (`npm run build`), wherever the build has put this file. */
const builtConsole = join(dirname(createRequire(import.meta.url).resolve('#package.json')), 'web/dist');

/**
 * The build gives its files a hash of what is in them, in their names. Those of `web/public` keep theirs: the next
 * version may have others by the same names.
 */
const hasHash = /-[\w-]{8}\.\w+(\.br|\.gz)?$/;

/** `GET /console/…`: the page of the console at every address it makes, and its files. */
export function serveConsole(app: NestFastifyApplication): void {
  const server = app.getHttpAdapter().getInstance();
  // Relative for the same reason as the base of the page.
  server.get('/console', (_request, reply) => reply.redirect('console/', 308));
  if (existsSync(join(builtConsole, 'index.html'))) serveFiles(server);
  else
    server.get('/console/*', () => {
      throw new UnavailableProblem('The console is not built: run `npm run build` and start again.', 60);
    });
}

function serveFiles(server: FastifyInstance): void {
  const template = readFileSync(join(builtConsole, 'index.html'), 'utf8');
  // Not awaited: that would begin the start of the server, which Nest has not given its handlers yet.
  void server.register(fastifyStatic, {
    root: join(builtConsole, 'assets'),
    prefix: '/console/assets/',
    decorateReply: false,
    index: false,
    // Made by the build, so that nothing is compressed while somebody waits.
    preCompressed: true,
    immutable: true,
    maxAge: '365d',
    setHeaders: (reply, path) => {
      void reply.header('vary', 'Accept-Encoding');
      if (!hasHash.test(path)) void reply.header('cache-control', 'no-cache');
    },
  });
  server.get('/console/*', (request, reply) => {
    const path = (request.params as { '*': string })['*'];
    if (!wantsPage(request)) throw new NotFoundProblem();
    return sendPage(reply, template, path);
  });
}

/** A script or a picture that is not there must not be answered with a page. */
const wantsPage = ({ headers }: FastifyRequest): boolean => /\btext\/html\b|^\*\/\*$/.test(headers.accept ?? '*/*');

function sendPage(reply: FastifyReply, template: string, path: string): FastifyReply {
  const nonce = randomBytes(16).toString('base64url');
  return reply
    .type('text/html; charset=utf-8')
    .header('cache-control', 'no-store')
    .header('content-security-policy', pagePolicy(nonce))
    .send(pageFor(template, path, nonce));
}
