import { Body, Delete, Get, Headers, Param, Patch, Post, Query } from '@nestjs/common';
import type * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
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
const overRoom = {
  409: '`too-many-channels`, `channels-too-large`: all channels together would be more, or larger, than the settings allow.',
};

/** Channels and an operator's rules for them. Publishers create and describe channels too, in the Notificaties API. */
@AdminController('channels', 'channels')
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
      'As a publisher does in the Notificaties API, with the same limits, and with rules if you like. Its name cannot be changed.',
    body: newChannelInput,
    status: 201,
    answer: channelOutput,
    hasEntityTag: true,
    problems: overRoom,
  })
  async create(@Body() body: unknown, @CurrentApplication() caller: Application): Promise<Shown> {
    const { documentationLink = '', filters = [], ...input } = checkInput(newChannelInput, body);
    refuseUnknown({ ...input, filters }, { filters: [], deduplication: null });
    await this.documentation.check(documentationLink, 'documentationLink', caller);
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
    problems: { ...unknownChannel, ...overRoom },
  })
  async change(
    @Param('channelId', ResourceId) channelId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
    @CurrentApplication() caller: Application,
  ): Promise<Shown> {
    const changes = checkInput(channelChangesInput, body);
    const { documentationLink } = changes;
    const mustFit = (before: Channel) => {
      requireMatch(ifMatch, channelToShow(before));
      refuseUnknown(changes, before);
    };
    const channel = await this.channels.get(channelId);
    mustFit(channel); // before, too: no documentation is fetched for a change that is refused
    if (documentationLink !== undefined && documentationLink !== channel.documentationLink)
      await this.documentation.check(documentationLink, 'documentationLink', caller);
    return channelToShow(await this.channels.update(channelId, changes, mustFit));
  }

  @Delete(':channelId')
  @AdminOperation({
    id: 'channel_delete',
    summary: 'Removes a channel that no subscription names. Publications on it are refused.',
    description:
      'Its notifications, and their deliveries, go on as before, and are kept as long as they would have been. Each application that may publish can make a channel of this name again.',
    honoursIfMatch: true,
    status: 204,
    problems: { ...unknownChannel, 409: '`channel-in-use`: subscriptions name it.' },
  })
  async remove(
    @Param('channelId', ResourceId) channelId: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    await this.channels.remove(channelId, (before) => requireMatch(ifMatch, channelToShow(before)));
  }
}
