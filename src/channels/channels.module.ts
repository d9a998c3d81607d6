import { Module } from '@nestjs/common';
import { ChannelDirectory } from './channel-directory.service.js';
import { ChannelsController } from './channels.controller.js';
import { ChannelsService } from './channels.service.js';
import { DocumentationLinkCheck } from './documentation-link.service.js';
import { KanaalController } from './kanaal.controller.js';

@Module({
  controllers: [KanaalController, ChannelsController],
  providers: [ChannelDirectory, ChannelsService, DocumentationLinkCheck],
  exports: [ChannelDirectory, ChannelsService],
})
export class ChannelsModule {}
