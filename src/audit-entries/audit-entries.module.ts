import { Module } from '@nestjs/common';
import { AuditController } from './audit.controller.js';
import { EntryReader } from './entry-reader.service.js';

/** The audit log, as operators read it. */
@Module({ controllers: [AuditController], providers: [EntryReader] })
export class AuditEntriesModule {}
