import { Module } from '@nestjs/common';
import { ErasuresController } from './erasures.controller.js';
import { Erasures } from './erasures.service.js';
import { RetentionController } from './retention.controller.js';
import { RetentionReports } from './retention-report.service.js';

/** Retention, as operators see it and ask for it. */
@Module({
  controllers: [RetentionController, ErasuresController],
  providers: [RetentionReports, Erasures],
})
export class RetentionModule {}
