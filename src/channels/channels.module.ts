import { Module } from '@nestjs/common';
import { ChannelAllowance } from './channel-allowance.service.js';
import { ChannelDirectory } from './channel-directory.service.js';
import { ChannelsController } from './channels.controller.js';
import { ChannelsService } from './channels.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';
import { KanaalController } from './kanaal.controller.js';

@Module({
  controllers: [KanaalController, ChannelsController],
  providers: [ChannelAllowance, ChannelDirectory, ChannelsService, DocumentationLinkCheck],
  exports: [ChannelAllowance, ChannelDirectory, ChannelsService],
})
export class ChannelsModule {}
