import { Body, Controller, Get, Headers, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type * as z from 'zod';
import { RequireSuperuser } from '../auth/auth.decorators.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { checkInput } from '../infra/http/check-input.js';
import { requireMatch } from '../infra/http/if-match.js';
import { pageByName } from '../infra/http/name-page.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import type { Channel } from './channel.js';
import {
  channelChangesInput,
  channelListOutput,
  channelListQuery,
  channelOutput,
  channelToShow,
  newChannelInput,
} from './channels-io.js';
import { ChannelsService } from './channels.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';
import { refuseUnknown } from './unknown-characteristics.js';

type Shown = z.output<typeof channelOutput>;

const unknownChannel = { 404: 'There is no such channel.' };

/** Channels and an operator's rules for them. Publishers create and describe channels too, in the Notificaties API. */
@ApiTags('channels')
@ApiBearerAuth()
@RequireSuperuser()
@Controller('admin/v1/channels')
export class ChannelsController {
  constructor(
    private readonly channels: ChannelsService,
    private readonly documentation: DocumentationLinkCheck,
  ) {}

  @Get()
  @AdminOperation({
    id: 'channel_list',
    summary: 'The channels, in the order of their names.',
    query: channelListQuery,
    status: 200,
    answer: channelListOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<z.output<typeof channelListOutput>> {
    const asked = checkInput(channelListQuery, query);
    const { items, ...page } = pageByName(await this.channels.list(), asked, {
      nameOf: ({ name }) => name,
      textsOf: ({ id, name }) => [id, name],
      isAfter: ({ name }, before) => name > before,
    });
    return { ...page, channels: items.map(channelToShow) };
  }

  @Post()
  @AdminOperation({
    id: 'channel_create',
    summary: 'Adds a channel.',
    description:
      'As a publisher does in the Notificaties API, with the same limits, and with rules if you like. A channel cannot be removed, nor its name be changed.',
    body: newChannelInput,
    status: 201,
    answer: channelOutput,
    hasEntityTag: true,
  })
  async create(@Body() body: unknown): Promise<Shown> {
    const { documentationLink = '', filters = [], ...input } = checkInput(newChannelInput, body);
    refuseUnknown({ ...input, filters }, { filters: [], deduplication: null });
    await this.documentation.check(documentationLink, 'documentationLink');
    return channelToShow(await this.channels.create({ ...input, documentationLink, filters }, 'name'));
  }

  @Get(':channelId')
  @AdminOperation({
    id: 'channel_read',
    summary: 'One channel.',
    status: 200,
    answer: channelOutput,
    hasEntityTag: true,
    problems: unknownChannel,
  })
  async read(@Param('channelId', ResourceId) channelId: string): Promise<Shown> {
    return channelToShow(await this.channels.get(channelId));
  }

  @Patch(':channelId')
  @AdminOperation({
    id: 'channel_change',
    summary:
      'Changes what a channel says of itself, which of its notifications are the same, how old they may become, and how long their bodies are kept.',
    description:
      'Only the fields given. Counts for every notification that is accepted from now on; `bodyRetentionDays` also for those of before.',
    body: channelChangesInput,
    status: 200,
    answer: channelOutput,
    hasEntityTag: true,
    honoursIfMatch: true,
    problems: unknownChannel,
  })
  async change(
    @Param('channelId', ResourceId) channelId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
  ): Promise<Shown> {
    const changes = checkInput(channelChangesInput, body);
    const { documentationLink } = changes;
    const channel = await this.channels.get(channelId);
    if (documentationLink !== undefined && documentationLink !== channel.documentationLink)
      await this.documentation.check(documentationLink, 'documentationLink');
    const mustFit = (before: Channel) => {
      requireMatch(ifMatch, channelToShow(before));
      refuseUnknown(changes, before);
    };
    return channelToShow(await this.channels.update(channelId, changes, mustFit));
  }
}
