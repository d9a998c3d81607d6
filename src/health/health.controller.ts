import { Controller, Get, Header, Res } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Health } from './check-health.js';
import { HealthChecks } from './health-checks.service.js';

export const healthOutput = z.strictObject({
  status: z
    .enum(['ready', 'degraded', 'unavailable'])
    .describe(
      '`degraded`: a part is down, yet a role of this process goes on working. `unavailable`: none of its roles can work.',
    ),
  parts: z.record(z.string(), z.strictObject({ status: z.enum(['up', 'down']), error: z.string().optional() })),
  down: z.array(z.string()).describe('Names of the parts that are down.'),
});

const ready = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Health' } } } };

/** For orchestrators and load balancers, hence without a token; it tells no names of hosts and no secrets. */
@ApiTags('health')
@Controller('health')
export class HealthController {
  constructor(private readonly checks: HealthChecks) {}

  @Get('live')
  @Header('cache-control', 'no-store')
  @ApiOperation({ operationId: 'health_live', summary: 'Whether the process runs and answers; if not, restart it.' })
  @ApiResponse({
    status: 200,
    description: 'It does.',
    content: {
      'application/json': {
        schema: { type: 'object', required: ['status'], properties: { status: { type: 'string', enum: ['live'] } } },
      },
    },
  })
  live(): { status: 'live' } {
    return { status: 'live' };
  }

  @Get('ready')
  @Header('cache-control', 'no-store')
  @ApiOperation({ operationId: 'health_ready', summary: 'Whether this process can do its work, part by part.' })
  @ApiResponse({ status: 200, description: '`ready`, or `degraded`: keep sending it work.', ...ready })
  @ApiResponse({ status: 503, description: '`unavailable`: send it nothing.', ...ready })
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<Health> {
    const health = await this.checks.look();
    reply.status(health.status === 'unavailable' ? 503 : 200);
    return health;
  }
}
