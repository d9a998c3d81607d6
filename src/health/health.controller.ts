import { Controller, Get, Header, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { notAcceptable } from '../openapi/admin-operation.js';
import { describeOperation } from '../openapi/describe-operation.js';
import type { Health } from './check-health.js';
import { HealthChecks } from './health-checks.service.js';

const healthOutput = z
  .strictObject({
    status: z
      .enum(['ready', 'degraded', 'unavailable'])
      .describe(
        '`degraded`: a part is down, yet a role of this process goes on working. `unavailable`: none of its roles can work.',
      ),
    parts: z.record(z.string(), z.strictObject({ status: z.enum(['up', 'down']), error: z.string().optional() })),
    down: z.array(z.string()).describe('Names of the parts that are down.'),
  })
  .meta({ id: 'Health' });

/** For orchestrators and load balancers, hence without a token; it shows no names of hosts and no secrets. */
@ApiTags('health')
@Controller('health')
export class HealthController {
  constructor(private readonly checks: HealthChecks) {}

  @Get('live')
  @Header('cache-control', 'no-store')
  @describeOperation({
    id: 'health_live',
    summary: 'Whether the process runs and answers; if not, restart it.',
    status: 200,
    answers: {
      200: { description: 'It does.', schema: z.strictObject({ status: z.enum(['live']) }) },
      406: notAcceptable,
    },
  })
  live(): { status: 'live' } {
    return { status: 'live' };
  }

  @Get('ready')
  @Header('cache-control', 'no-store')
  @describeOperation({
    id: 'health_ready',
    summary: 'Whether this process can do its work, part by part.',
    status: 200,
    answers: {
      200: { description: '`ready`, or `degraded`: keep sending it work.', schema: healthOutput },
      406: notAcceptable,
      503: { description: '`unavailable`: send it nothing.', schema: healthOutput },
    },
  })
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<Health> {
    const health = await this.checks.look();
    reply.status(health.status === 'unavailable' ? 503 : 200);
    return health;
  }
}
