import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { readSettings } from '../../src/config/settings.js';
import { createHttpAdapter, type ServerOptions } from '../../src/infra/http/http-server.js';
import { nrcDialect } from '../../src/nrc/nrc-dialect.js';

/** The program's HTTP server without its routes, for those of a test. It does not listen yet. */
export function bareHttpServer(more: Partial<ServerOptions> = {}): FastifyInstance {
  Logger.overrideLogger(false);
  return createHttpAdapter({
    settings: readSettings({}),
    dialect: nrcDialect,
    metrics: () => Promise.resolve('metrics'),
    ...more,
  }).getInstance<FastifyInstance>();
}
