import { Body, Controller, Get, Param, Patch, Post, Put, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { Audited, CurrentApplication } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { KeptAnswers } from '../catalogue/kept-answers.service.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { baseUrlOf } from '../infra/http/origin.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { FieldReader } from '../nrc/fields.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { locationHeader, uuidPath } from '../nrc/resource.js';
import type { Channel } from './channel.js';
import type { ChannelInput } from './channel-changes.js';
import { ChannelsService } from './channels.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';
import { kanaalSchema, patchedKanaalSchema } from './kanaal.js';
import { readKanaal, readKanaalFields } from './read-kanaal.js';

/** A channel as the standard writes it. */
interface Kanaal {
  url: string;
  naam: string;
  documentatieLink: string;
  filters: readonly string[];
}

const path = `${apiPath}/kanaal`;
const either = [scopes.publish, scopes.consume];
const roomTexts = {
  409: 'With this all kanalen together would be more, or larger, than this server allows (CHANNELS_MAX, CHANNEL_BYTES_MAX).',
};

@Audited()
@Controller(path)
export class KanaalController {
  constructor(
    private readonly channels: ChannelsService,
    private readonly documentation: DocumentationLinkCheck,
    private readonly kept: KeptAnswers,
  ) {}

  @Get()
  @NrcOperation({
    id: 'kanaal_list',
    tag: 'kanaal',
    summary: 'List the kanalen',
    description: 'All of them, in the order of their names.',
    scopes: either,
    query: z.object({ naam: z.string().optional().describe('Only the one with exactly this name.') }),
    status: 200,
    answer: z.array(kanaalSchema),
    problems: [400],
  })
  async list(
    @Query(new KnownQuery('naam')) query: { naam?: string },
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Kanaal[] | Buffer> {
    const base = baseUrlOf(request); // now: the socket of a caller that has left has no address
    // An empty value does not filter.
    if (query.naam) return (await this.channels.list(query.naam)).map((channel) => present(channel, base));
    return this.kept.answer(`kanaal of ${base}`, application.id, reply, () => ({
      before: '[',
      items: this.channels.listKnown(),
      present: (channel) => present(channel, base),
      after: ']',
    }));
  }

  @Get(':uuid')
  @NrcOperation({
    id: 'kanaal_read',
    tag: 'kanaal',
    summary: 'Read a kanaal',
    description: 'No query parameter is known here, so each is refused.',
    scopes: either,
    path: uuidPath,
    status: 200,
    answer: kanaalSchema,
    problems: [400, 404],
  })
  async retrieve(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery()) _: object,
    @Req() request: FastifyRequest,
  ): Promise<Kanaal> {
    return present(await this.channels.get(uuid), baseUrlOf(request));
  }

  @Post()
  @NrcOperation({
    id: 'kanaal_create',
    tag: 'kanaal',
    summary: 'Create a kanaal',
    description: 'The name must be free.',
    scopes: [scopes.publish],
    body: kanaalSchema,
    status: 201,
    answer: kanaalSchema,
    answerHeaders: locationHeader,
    problems: [409],
    problemTexts: roomTexts,
  })
  async create(
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Kanaal> {
    const input = readKanaal(new FieldReader(body));
    await this.documentation.check(input.documentationLink, 'documentatieLink', application);
    const kanaal = present(await this.channels.create(input, 'naam'), baseUrlOf(request));
    void reply.header('location', kanaal.url);
    return kanaal;
  }

  @Put(':uuid')
  @NrcOperation({
    id: 'kanaal_update',
    tag: 'kanaal',
    summary: 'Replace a kanaal',
    description: 'naam must be the present one. Another field left out stays as it is, as in Open Notificaties.',
    scopes: [scopes.publish],
    path: uuidPath,
    body: kanaalSchema,
    status: 200,
    answer: kanaalSchema,
    problems: [404, 409],
    problemTexts: roomTexts,
  })
  async update(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<Kanaal> {
    const fields = new FieldReader(body);
    const changes = readKanaalFields(fields, { isPartial: false });
    return this.change(await this.channels.get(uuid), fields, changes, application, request);
  }

  @Patch(':uuid')
  @NrcOperation({
    id: 'kanaal_partial_update',
    tag: 'kanaal',
    summary: 'Change a kanaal',
    description: 'A field left out stays as it is; naam cannot be changed.',
    scopes: [scopes.publish],
    path: uuidPath,
    body: patchedKanaalSchema,
    status: 200,
    answer: kanaalSchema,
    problems: [404, 409],
    problemTexts: roomTexts,
  })
  async partialUpdate(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<Kanaal> {
    const fields = new FieldReader(body);
    const changes = readKanaalFields(fields, { isPartial: true });
    return this.change(await this.channels.get(uuid), fields, changes, application, request);
  }

  private async change(
    channel: Channel,
    fields: FieldReader,
    { name = channel.name, ...changes }: Partial<ChannelInput>,
    application: Application,
    request: FastifyRequest,
  ): Promise<Kanaal> {
    if (name !== channel.name) {
      fields.refuse('naam', 'wijzigen-niet-toegelaten', 'The name of a kanaal cannot be changed.');
      throw new ValidationProblem(fields.invalidParams);
    }
    const { documentationLink } = changes;
    if (documentationLink !== undefined && documentationLink !== channel.documentationLink) {
      await this.documentation.check(documentationLink, 'documentatieLink', application);
    }
    return present(await this.channels.update(channel.id, changes), baseUrlOf(request));
  }
}

const present = (channel: Channel, base: string): Kanaal => ({
  url: `${base}${path}/${channel.id}`,
  naam: channel.name,
  documentatieLink: channel.documentationLink,
  filters: channel.filters,
});
