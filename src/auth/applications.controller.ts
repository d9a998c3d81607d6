import { Body, Delete, Get, Header, Headers, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type * as z from 'zod';
import { Config } from '../config/config.module.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { deletedMeanwhile } from '../openapi/idempotency-headers.js';
import { checkInput } from '../infra/http/check-input.js';
import { entityTagOf, requireMatch } from '../infra/http/if-match.js';
import { CreationRequests } from '../request-keys/creation-requests.service.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import type { Application } from './application.js';
import {
  applicationChangesInput,
  applicationToShow,
  newApplicationInput,
  applicationListOutput,
  applicationListQuery,
  applicationOutput,
  applicationWithSecretOutput,
  createdApplicationOutput,
  refusalOfClientId,
  refusalOfSecret,
} from './applications-io.js';
import { ApplicationsService, type ApplicationWithSecret, type ShownApplication } from './applications.service.js';
import { AdminController, CurrentApplication } from './auth.decorators.js';

type Shown = z.output<typeof applicationOutput>;
type ShownWithSecret = z.output<typeof applicationWithSecretOutput>;
type Created = z.output<typeof createdApplicationOutput>;

const matching = (ifMatch: string | undefined) => (current: ShownApplication) =>
  requireMatch(ifMatch, applicationToShow(current));

function withSecret({ application, secret }: ApplicationWithSecret, reply: FastifyReply): ShownWithSecret {
  const shown = applicationToShow(application);
  void reply.header('etag', entityTagOf(shown)); // that of a GET, which has no secret
  return { ...shown, secret };
}

/** docs/decisions/0083 */
const takenAway =
  'Rights and secrets that it takes away end at once for changes and publications, at every process; for reading within about a second. Its subscriptions go on being delivered to: pause or delete them to end that.';

const unknownApplication = { 404: 'There is no such application.' };

/** Credentials. A secret is in the answer that makes it and nowhere else. */
@AdminController('applications', 'applications')
export class ApplicationsController {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly requests: CreationRequests,
    private readonly config: Config,
  ) {}

  @Get()
  @AdminOperation({
    id: 'application_list',
    summary: 'The applications, by client id. The superuser of the settings is not among them.',
    query: applicationListQuery,
    status: 200,
    answer: applicationListOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<z.output<typeof applicationListOutput>> {
    const { items, ...page } = await this.applications.page(checkInput(applicationListQuery, query));
    return { ...page, applications: items.map(applicationToShow) };
  }

  @Post()
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'application_create',
    summary: 'Adds an application. The first answer shows its secret, this once.',
    description:
      'With the client id of one that was removed it owns what that one had: its subscriptions, with their signing keys and what was accepted for them, its scheduled notifications, and its Idempotency-Keys. For another party take another client id.',
    body: newApplicationInput,
    isIdempotent: true,
    status: 201,
    answer: createdApplicationOutput,
    hasEntityTag: true,
    problems: { 409: deletedMeanwhile },
  })
  async create(
    @Body() body: unknown,
    @CurrentApplication() caller: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Created> {
    const input = checkInput(newApplicationInput, body);
    const refusal = refusalOfClientId(input.clientId);
    if (refusal) throw new ValidationProblem([{ name: 'clientId', ...refusal }]);
    this.checkLength(input.secret);
    const hasSecret = input.secret !== undefined;
    const asked = { application: caller.clientId, operation: 'create-application', input, hasSecret } as const;
    const done = await this.requests.carryOut(
      { request, reply },
      asked,
      (reserve) => this.applications.create(input, reserve),
      (id) => this.applications.getCreated(id),
    );
    if (done.kind === 'created') return withSecret(done.created, reply);
    return applicationToShow(done.found);
  }

  @Get(':applicationId')
  @AdminOperation({
    id: 'application_read',
    summary: 'One application.',
    status: 200,
    answer: applicationOutput,
    hasEntityTag: true,
    problems: unknownApplication,
  })
  async read(@Param('applicationId', ResourceId) applicationId: string): Promise<Shown> {
    return applicationToShow(await this.applications.get(applicationId));
  }

  @Patch(':applicationId')
  @AdminOperation({
    id: 'application_change',
    summary: 'Changes an application: only the fields given.',
    description: `Also for tokens that are in use. ${takenAway}`,
    body: applicationChangesInput,
    status: 200,
    answer: applicationOutput,
    hasEntityTag: true,
    honoursIfMatch: true,
    problems: unknownApplication,
  })
  async change(
    @Param('applicationId', ResourceId) applicationId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
  ): Promise<Shown> {
    const changes = checkInput(applicationChangesInput, body);
    this.checkLength(changes.secret);
    return applicationToShow(await this.applications.update(applicationId, changes, matching(ifMatch)));
  }

  @Post(':applicationId/rotate-secret')
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'application_rotate_secret',
    summary: 'Makes a new secret, shown this once. Tokens signed with the old one are refused.',
    description: takenAway,
    status: 200,
    answer: applicationWithSecretOutput,
    hasEntityTag: true,
    honoursIfMatch: true,
    problems: unknownApplication,
  })
  async rotateSecret(
    @Param('applicationId', ResourceId) applicationId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ShownWithSecret> {
    return withSecret(await this.applications.rotateSecret(applicationId, matching(ifMatch)), reply);
  }

  @Delete(':applicationId')
  @AdminOperation({
    id: 'application_delete',
    summary:
      'Removes an application: its tokens are refused. Its subscriptions stay, and a new application of its client id owns them again.',
    description: takenAway,
    status: 204,
    honoursIfMatch: true,
    problems: unknownApplication,
  })
  async remove(
    @Param('applicationId', ResourceId) applicationId: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    await this.applications.remove(applicationId, matching(ifMatch));
  }

  private checkLength(secret: string | undefined): void {
    const refusal = secret === undefined ? undefined : refusalOfSecret(secret, this.config.settings);
    if (refusal) throw new ValidationProblem([{ name: 'secret', ...refusal }]);
  }
}
