import { Module } from '@nestjs/common';
import { AuditController } from './audit.controller.js';
import { EntryReader } from './entry-reader.service.js';

/** What operators see of the audit log. */
@Module({ controllers: [AuditController], providers: [EntryReader] })
export class AuditEntriesModule {}
