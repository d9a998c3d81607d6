import { Body, Controller, Get, Param, Patch } from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type { z } from 'zod';
import { RequireSuperuser } from '../auth/auth.decorators.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { checkInput } from '../infra/http/check-input.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { channelChangesInput, channelToShow, channelListOutput, channelOutput } from './channels-io.js';
import { ChannelsService } from './channels.service.js';
import { unknownCharacteristics } from './unknown-characteristics.js';

type Shown = z.output<typeof channelOutput>;

const unknownChannel = { 404: 'There is no such channel.' };

/** An operator's settings of channels. Publishers create and describe channels, in the Notificaties API. */
@ApiTags('channels')
@ApiBearerAuth()
@RequireSuperuser()
@Controller('admin/v1/channels')
export class ChannelsController {
  constructor(private readonly channels: ChannelsService) {}

  @Get()
  @AdminOperation({
    id: 'channel_list',
    summary: 'Every channel, in the order of their names.',
    status: 200,
    answer: channelListOutput,
  })
  async list(): Promise<z.output<typeof channelListOutput>> {
    return { channels: (await this.channels.list()).map(channelToShow) };
  }

  @Get(':channelId')
  @AdminOperation({
    id: 'channel_read',
    summary: 'One channel.',
    status: 200,
    answer: channelOutput,
    problems: unknownChannel,
  })
  async read(@Param('channelId', ResourceId) channelId: string): Promise<Shown> {
    return channelToShow(await this.channels.get(channelId));
  }

  @Patch(':channelId')
  @AdminOperation({
    id: 'channel_change',
    summary:
      'Says which notifications of a channel are the same, how old they may become, and how long their bodies are kept.',
    description:
      'Only the fields given. Counts for every notification that is accepted from now on; `bodyRetentionDays` also for those of before.',
    body: channelChangesInput,
    status: 200,
    answer: channelOutput,
    problems: unknownChannel,
  })
  async change(@Param('channelId', ResourceId) channelId: string, @Body() body: unknown): Promise<Shown> {
    const changes = checkInput(channelChangesInput, body);
    const channel = await this.channels.get(channelId);
    const unknown = unknownCharacteristics(changes.deduplication?.fields ?? [], channel);
    if (unknown.length > 0) throw new ValidationProblem(unknown);
    return channelToShow(await this.channels.update(channelId, changes));
  }
}
