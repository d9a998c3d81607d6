import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { ErasuresController } from './erasures.controller.js';
import { Erasures } from './erasures.service.js';
import { RetentionController } from './retention.controller.js';
import { RetentionReports } from './retention-report.service.js';

/** Retention, as operators see it and ask for it. */
@Module({
  imports: [ChannelsModule],
  controllers: [RetentionController, ErasuresController],
  providers: [RetentionReports, Erasures],
})
export class RetentionModule {}
