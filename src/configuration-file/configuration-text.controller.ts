import { Body, Get, Headers, Post, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { checkInput } from '../infra/http/check-input.js';
import { entityTagOf, requireMatch } from '../infra/http/if-match.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { applyQuery, planOutput, pruneQuery } from './configuration-io.js';
import {
  configurationTextInput,
  exportedTextOutput,
  plannedTextOutput,
  plannedToShow,
} from './configuration-text-io.js';
import type { Remark } from './configuration-text.js';
import { ConfigurationService } from './configuration.service.js';
import { KeptExports } from './kept-exports.service.js';
import type { Plan } from './planning.js';
import { readConfigurationAside, type TextReadAside } from './read-aside.js';

/** For those who edit the text of a configuration where it is not kept. */
@AdminController('configuration', 'configuration/text')
export class ConfigurationTextController {
  constructor(
    private readonly configuration: ConfigurationService,
    private readonly exports: KeptExports,
  ) {}

  @Get()
  @AdminOperation({
    id: 'configuration_text_read',
    summary: 'The configuration as the text of a file, in YAML: applied as it is, it changes nothing.',
    description: 'In the place of each secret is a reference.',
    status: 200,
    answer: exportedTextOutput,
  })
  read(@CurrentApplication() { id }: Application, @Res({ passthrough: true }) reply: FastifyReply): Promise<Buffer> {
    return this.exports.text(id, reply);
  }

  /**
   * Whether a secret is the one that is stored can be seen from a plan, so it is nothing for those who may only look.
   */
  @Post('plan')
  @AdminOperation({
    id: 'configuration_text_plan',
    summary:
      'The changes that applying a text would make, field by field, or all that is wrong with it, by line. Nothing is changed.',
    description:
      'References are not followed to variables and files of the server: the request gives their values. Where it gives none the field counts as left out, whatever its `default`: what is there stays, and what is new needs it. The `ETag` of the answer stands for these changes.',
    body: configurationTextInput,
    query: pruneQuery,
    status: 200,
    answer: plannedTextOutput,
    hasEntityTag: true,
  })
  async plan(
    @Query() query: unknown,
    @Body() body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.output<typeof plannedTextOutput>> {
    const { prune } = checkInput(pruneQuery, query);
    const read = await readText(body);
    let plan: Plan | null = null;
    const problems = [...read.problems];
    if (read.configuration !== undefined) {
      try {
        plan = await this.configuration.plan(read.configuration, prune);
      } catch (error) {
        problems.push(...(await remarksOf(error, read)));
      }
    }
    if (problems.length > 0) plan = null;
    if (plan) void reply.header('etag', entityTagOf(inOrder(plan)));
    return plannedToShow(plan, read, problems);
  }

  @Post('apply')
  @AdminOperation({
    id: 'configuration_text_apply',
    summary: 'Makes what is there as the text says, in one transaction, and answers what was changed.',
    description:
      'As its plan says, whose `ETag` may come along as `If-Match`: then nothing but what was seen there is changed. `invalidParams` names what is wrong, with line and column.',
    body: configurationTextInput,
    query: applyQuery,
    status: 200,
    answer: planOutput,
    honoursIfMatch: true,
    problems: {
      409: '`removals-not-confirmed`: `confirm` is needed, or is not what would be removed now; `detail` has the count.',
    },
  })
  async apply(
    @Query() query: unknown,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
  ): Promise<Plan> {
    const { prune, confirm } = checkInput(applyQuery, query);
    const read = await readText(body);
    if (read.problems.length > 0) throw refused(read.problems);
    const mustFit = (plan: Plan) => requireMatch(ifMatch, inOrder(plan));
    try {
      return await this.configuration.apply(read.configuration, prune, { confirm, mustFit });
    } catch (error) {
      throw refused(await remarksOf(error, read));
    }
  }
}

function readText(body: unknown): Promise<TextReadAside> {
  const { text, values } = checkInput(configurationTextInput, body);
  return readConfigurationAside(text, { values });
}

/** @throws errors that say nothing of the configuration */
async function remarksOf(error: unknown, { remarksOn }: TextReadAside): Promise<Remark[]> {
  if (!(error instanceof ValidationProblem)) throw error;
  return remarksOn(error.extra.invalidParams ?? []);
}

const refused = (remarks: readonly Remark[]): ValidationProblem =>
  new ValidationProblem(
    remarks.map(({ line, column, field, said }) => ({
      name: field,
      code: 'invalid',
      reason: `Line ${line}, column ${column}: ${said}`,
    })),
  );

/** Removals come in any order, and notes tell of more than what is changed. */
const inOrder = ({ changes }: Plan): object =>
  changes
    .map((change) => ({ ...change, notes: [] }))
    .toSorted((one, other) => (`${one.section} ${one.key}` < `${other.section} ${other.key}` ? -1 : 1));
