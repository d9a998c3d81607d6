import { Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { stringify } from 'yaml';
import { originOf } from '../infra/http/origin.js';
import { nrcDocument } from './nrc-document.js';
import { renderPage } from './nrc-page.js';

const base = '/api/v1';

/**
 * What describes the Notificaties API, for everybody and from every origin. Routes of the server itself, not of a controller:
 * Nest takes the slash off the end of a path, and two of these have one.
 */
@Module({})
export class OpenApiModule implements OnModuleInit {
  constructor(private readonly host: HttpAdapterHost) {}

  onModuleInit(): void {
    const server = this.host.httpAdapter.getInstance<FastifyInstance>();
    const yaml = {
      type: 'application/yaml; charset=utf-8',
      text: stringify(nrcDocument, { aliasDuplicateObjects: false }),
    };
    const json = { type: 'application/json; charset=utf-8', text: JSON.stringify(nrcDocument) };
    const page = { type: 'text/html; charset=utf-8', text: renderPage(nrcDocument) };

    const serve = (path: string, choose: (request: FastifyRequest) => { type: string; text: string }) =>
      server.get(base + path, (request: FastifyRequest, reply: FastifyReply) => {
        const { type, text } = choose(request);
        return reply.header('access-control-allow-origin', '*').type(type).send(text);
      });
    serve('/openapi.yaml', () => yaml);
    serve('/openapi.json', () => json);
    // Where clients made for older servers look; one cannot make a single call without it.
    serve('/schema/openapi.yaml', ({ query }) => ((query as { format?: unknown }).format === 'json' ? json : yaml));
    serve('/schema/openapi.json', () => json);
    serve('/schema/', () => page);
    serve('/', (request) => ({ type: json.type, text: JSON.stringify(resourcesAt(originOf(request) + base)) }));
  }
}

const resourcesAt = (root: string) =>
  Object.fromEntries(['abonnement', 'kanaal', 'notificaties'].map((name) => [name, `${root}/${name}`]));
