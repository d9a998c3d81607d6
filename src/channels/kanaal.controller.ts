import { Body, Controller, Get, Param, Patch, Post, Put, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequireScope } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { FieldReader } from '../infra/http/fields.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { originOf } from '../infra/http/origin.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import type { Channel } from './channel.js';
import { ChannelsService, type ChannelInput } from './channels.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';

/** A channel as the standard writes it. */
interface Kanaal {
  url: string;
  naam: string;
  documentatieLink: string;
  filters: readonly string[];
}

const path = '/api/v1/kanaal';

@ApiExcludeController() // it has a document of its own (src/openapi)
@Controller(path)
export class KanaalController {
  constructor(
    private readonly channels: ChannelsService,
    private readonly documentation: DocumentationLinkCheck,
  ) {}

  @Get()
  @RequireScope(scopes.publish, scopes.consume)
  async list(
    @Query(new KnownQuery('naam')) query: { naam?: string },
    @Req() request: FastifyRequest,
  ): Promise<Kanaal[]> {
    // An empty value asks for nothing in particular.
    const channels = await this.channels.list(query.naam || undefined);
    return channels.map((channel) => present(channel, request));
  }

  @Get(':uuid')
  @RequireScope(scopes.publish, scopes.consume)
  async retrieve(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery()) _: object,
    @Req() request: FastifyRequest,
  ): Promise<Kanaal> {
    return present(await this.channels.get(uuid), request);
  }

  @Post()
  @RequireScope(scopes.publish)
  async create(
    @Body() body: JsonObject,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Kanaal> {
    const fields = new FieldReader(body);
    const input = readKanaal(fields);
    await this.checkDocumentation(fields, input.documentationLink);
    const kanaal = present(await this.channels.create(input), request);
    void reply.header('location', kanaal.url);
    return kanaal;
  }

  @Put(':uuid')
  @RequireScope(scopes.publish)
  async update(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @Req() request: FastifyRequest,
  ): Promise<Kanaal> {
    const fields = new FieldReader(body);
    return this.change(await this.channels.get(uuid), fields, readKanaal(fields), request);
  }

  @Patch(':uuid')
  @RequireScope(scopes.publish)
  async partialUpdate(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @Req() request: FastifyRequest,
  ): Promise<Kanaal> {
    const fields = new FieldReader(body);
    return this.change(await this.channels.get(uuid), fields, readFields(fields, { isPartial: true }), request);
  }

  private async change(
    channel: Channel,
    fields: FieldReader,
    { name = channel.name, ...changes }: Partial<ChannelInput>,
    request: FastifyRequest,
  ): Promise<Kanaal> {
    if (name !== channel.name) {
      fields.refuse('naam', 'wijzigen-niet-toegelaten', 'The name of a kanaal cannot be changed.');
      throw new ValidationProblem(fields.invalidParams);
    }
    const { documentationLink } = changes;
    if (documentationLink !== undefined && documentationLink !== channel.documentationLink) {
      await this.checkDocumentation(fields, documentationLink);
    }
    return present(await this.channels.update(channel.id, changes), request);
  }

  private async checkDocumentation(fields: FieldReader, link: string): Promise<void> {
    const refusal = await this.documentation.refusal(link);
    if (refusal === undefined) return;
    fields.refuse('documentatieLink', 'bad-url', `The documentation ${refusal}.`);
    throw new ValidationProblem(fields.invalidParams);
  }
}

/** @throws {ValidationProblem} */
function readKanaal(fields: FieldReader): ChannelInput {
  const { name = '', documentationLink = '', filters = [] } = readFields(fields, { isPartial: false });
  return { name, documentationLink, filters };
}

/**
 * The fields that were sent.
 * @throws {ValidationProblem}
 */
function readFields(fields: FieldReader, { isPartial }: { isPartial: boolean }): Partial<ChannelInput> {
  const name = fields.text('naam', { maxLength: 50, isOptional: isPartial });
  const documentationLink = fields.url('documentatieLink', { maxLength: 200, mayBeBlank: true, isOptional: true });
  const filters = fields.textList('filters', { maxLength: 100, isOptional: true });
  if (fields.invalidParams.length > 0) throw new ValidationProblem(fields.invalidParams);
  return { name, documentationLink, filters };
}

const present = (channel: Channel, request: FastifyRequest): Kanaal => ({
  url: `${originOf(request)}${path}/${channel.id}`,
  naam: channel.name,
  documentatieLink: channel.documentationLink,
  filters: channel.filters,
});
