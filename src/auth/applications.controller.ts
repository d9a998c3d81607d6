import { Body, Controller, Delete, Get, Header, Param, Patch, Post } from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type { z } from 'zod';
import { AdminOperation } from '../infra/http/admin-operation.js';
import { checkInput } from '../infra/http/check-input.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import {
  applicationChangesInput,
  applicationToShow,
  newApplicationInput,
  type applicationListOutput,
  type applicationOutput,
  type applicationWithSecretOutput,
} from './applications-io.js';
import { ApplicationsService } from './applications.service.js';
import { RequireSuperuser } from './auth.decorators.js';

type Shown = z.output<typeof applicationOutput>;
type ShownWithSecret = z.output<typeof applicationWithSecretOutput>;

const unknownApplication = { 404: 'There is no such application.' };

/** Credentials. A secret is in the answer that makes it and nowhere else. */
@ApiTags('applications')
@ApiBearerAuth()
@RequireSuperuser()
@Controller('admin/v1/applications')
export class ApplicationsController {
  constructor(private readonly applications: ApplicationsService) {}

  @Get()
  @AdminOperation({
    id: 'application_list',
    summary: 'Every application, by client id. The superuser of the settings is not among them.',
    status: 200,
    answer: 'ApplicationList',
  })
  async list(): Promise<z.output<typeof applicationListOutput>> {
    return { applications: (await this.applications.list()).map(applicationToShow) };
  }

  @Post()
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'application_create',
    summary: 'Adds an application. The answer shows its secret, this once.',
    body: 'NewApplication',
    status: 201,
    answer: 'ApplicationWithSecret',
  })
  async create(@Body() body: unknown): Promise<ShownWithSecret> {
    const { application, secret } = await this.applications.create(checkInput(newApplicationInput, body));
    return { ...applicationToShow(application), secret };
  }

  @Get(':applicationId')
  @AdminOperation({
    id: 'application_read',
    summary: 'One application.',
    status: 200,
    answer: 'Application',
    problems: unknownApplication,
  })
  async read(@Param('applicationId', ResourceId) applicationId: string): Promise<Shown> {
    return applicationToShow(await this.applications.get(applicationId));
  }

  @Patch(':applicationId')
  @AdminOperation({
    id: 'application_change',
    summary: 'Changes an application: only the fields given, at once, also for tokens that are in use.',
    body: 'ApplicationChanges',
    status: 200,
    answer: 'Application',
    problems: unknownApplication,
  })
  async change(@Param('applicationId', ResourceId) applicationId: string, @Body() body: unknown): Promise<Shown> {
    const changes = checkInput(applicationChangesInput, body);
    return applicationToShow(await this.applications.update(applicationId, changes));
  }

  @Post(':applicationId/rotate-secret')
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'application_rotate_secret',
    summary: 'Makes a new secret, shown this once. Tokens signed with the old one are refused at once.',
    status: 200,
    answer: 'ApplicationWithSecret',
    problems: unknownApplication,
  })
  async rotateSecret(@Param('applicationId', ResourceId) applicationId: string): Promise<ShownWithSecret> {
    const { application, secret } = await this.applications.rotateSecret(applicationId);
    return { ...applicationToShow(application), secret };
  }

  @Delete(':applicationId')
  @AdminOperation({
    id: 'application_delete',
    summary: 'Removes an application: its tokens are refused at once. Its subscriptions stay.',
    status: 204,
    problems: unknownApplication,
  })
  async remove(@Param('applicationId', ResourceId) applicationId: string): Promise<void> {
    await this.applications.remove(applicationId);
  }
}
