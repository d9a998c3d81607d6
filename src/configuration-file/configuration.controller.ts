import { Body, Get, Post, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { checkInput } from '../infra/http/check-input.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { applyQuery, planOutput, pruneQuery } from './configuration-io.js';
import { configurationSchema } from './configuration-schema.js';
import { ConfigurationService } from './configuration.service.js';
import { KeptExports } from './kept-exports.service.js';
import type { Plan } from './planning.js';

@AdminController('configuration', 'configuration')
export class ConfigurationController {
  constructor(
    private readonly configuration: ConfigurationService,
    private readonly exports: KeptExports,
  ) {}

  @Get()
  @AdminOperation({
    id: 'configuration_read',
    summary:
      'The configuration, as a file would have it: applied by `heraut apply`, or by the operations of its text, it changes nothing.',
    description:
      'In the place of each secret is a reference, `{"value_from": {"env": …, "required": false}}`, with a name for a variable. For `plan` and `apply` here, which know no references, leave those fields out, and give `null` for a header: the secrets stay as they are. Fields that have their default are left out. docs/configuration-file.md.',
    status: 200,
    answer: z.looseObject({}).meta({ id: 'ExportedConfiguration' }),
  })
  read(@CurrentApplication() { id }: Application, @Res({ passthrough: true }) reply: FastifyReply): Promise<Buffer> {
    return this.exports.json(id, reply);
  }

  @Post('plan')
  @AdminOperation({
    id: 'configuration_plan',
    summary: 'The changes that applying a configuration would make, field by field. Nothing is changed.',
    description: 'All that is wrong with it is told at once, by its path.',
    body: configurationSchema,
    query: pruneQuery,
    status: 200,
    answer: planOutput,
  })
  async plan(@Query() query: unknown, @Body() body: unknown): Promise<Plan> {
    return this.configuration.plan(body, checkInput(pruneQuery, query).prune);
  }

  @Post('apply')
  @AdminOperation({
    id: 'configuration_apply',
    summary: 'Makes what is there as the configuration says, in one transaction, and answers what was changed.',
    description:
      'A thing it does not name stays, unless it is pruned; a field that is left out stays as it is. Applied a second time it changes nothing. No callback is called by way of trial.',
    body: configurationSchema,
    query: applyQuery,
    status: 200,
    answer: planOutput,
    problems: {
      409: '`removals-not-confirmed`: `confirm` is needed, or is not what would be removed now; `detail` has the count.',
    },
  })
  async apply(@Query() query: unknown, @Body() body: unknown): Promise<Plan> {
    const { prune, confirm } = checkInput(applyQuery, query);
    return this.configuration.apply(body, prune, { confirm });
  }
}
