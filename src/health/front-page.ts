import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { version } from '../infra/version.js';
import type { Health } from './check-health.js';
import { HealthChecks } from './health-checks.service.js';

export interface Link {
  title: string;
  path: string;
}

/**
 * `GET /`: the page for people and probes that know only the address. 200 in every state: the answer for a load
 * balancer is at /health/ready. A route of the server, because a controller answers in JSON.
 */
export function serveFrontPage(app: NestFastifyApplication, links: readonly Link[]): void {
  const checks = app.get(HealthChecks, { strict: false });
  app
    .getHttpAdapter()
    .getInstance()
    .get('/', async ({ server }, reply) => {
      void reply.type('text/html; charset=utf-8').header('cache-control', 'no-store');
      return frontPage(await checks.look(), links, server.pathPrefix);
    });
}

/**
 * `health` has only names of our own parts and roles, the titles are constants, and the setting refuses a prefix with
 * other characters than a path needs: nothing to escape.
 */
function frontPage({ status, down }: Health, links: readonly Link[], prefix: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Heraut</title></head>
<body>
<h1>Heraut ${version}</h1>
<p>State: <strong>${status}</strong>${down.length > 0 ? ` (down: ${down.join(', ')})` : ''}</p>
<ul>
${links.map(({ title, path }) => `<li><a href="${prefix}${path}">${title}</a></li>`).join('\n')}
</ul>
</body>
</html>
`;
}
