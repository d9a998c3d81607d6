import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AuthorizationGuard } from '../auth/authorization.guard.js';
import { requireJsonAccepted } from '../infra/http/accept-json.guard.js';
import { readJsonBody } from '../infra/http/json-body.pipe.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NotificatiesController, toPublish } from './notificaties.controller.js';
import { publicationSeconds } from './publishing.counters.js';

/**
 * Leads `POST …/notificaties` from the router straight to its controller. The guards, pipes and interceptors that Nest
 * puts in between, each awaited, cost a tenth of a publication (docs/decisions/0024). The steps are theirs, in their
 * order; what the decorators of `create` say describes the route as before. Call it before the routes are registered.
 */
export function publishDirectly(app: NestFastifyApplication): void {
  const server = app.getHttpAdapter().getInstance();
  let isLed = false;
  server.addHook('onRoute', (route) => {
    if (route.method !== 'POST' || route.url !== `${apiPath}/notificaties`) return;
    const guard = app.get(AuthorizationGuard, { strict: false });
    const controller = app.get(NotificatiesController, { strict: false });
    const create = async (request: FastifyRequest, reply: FastifyReply): Promise<string> => {
      requireJsonAccepted(request);
      const application = guard.authorize(request, toPublish);
      // Nearly always known at once; to await it nevertheless would cost a turn of the microtask queue.
      const publisher = application instanceof Promise ? await application : application;
      return controller.create(readJsonBody(request.body), request, publisher, reply);
    };
    route.handler = (request, reply) => {
      const arrivedAt = performance.now();
      create(request, reply).then(
        (body) => {
          publicationSeconds.observe((performance.now() - arrivedAt) / 1000);
          return reply.send(body);
        },
        (error: unknown) => server.problems.answer(error, request, reply),
      );
    };
    isLed = true;
  });
  // Without this, a route that is renamed would go the long way, and nobody would notice.
  server.addHook('onReady', (done) => done(isLed ? undefined : new Error('There is no route to publish directly.')));
}
