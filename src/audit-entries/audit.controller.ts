import { Get, Query } from '@nestjs/common';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { checkInput } from '../infra/http/check-input.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { auditPageOutput, pageToShow } from './audit-output.js';
import { auditQuery } from './audit-query.js';
import { EntryReader } from './entry-reader.service.js';

@AdminController('audit', 'audit')
export class AuditController {
  constructor(private readonly reader: EntryReader) {}

  @Get()
  @ReadsMuch()
  @AdminOperation({
    id: 'audit_list',
    summary: 'Every change of the configuration, and what operators did with deliveries and endpoints; newest first.',
    description:
      'Publishing is no change. Entries cannot be changed or deleted; they are kept for AUDIT_RETENTION_DAYS. A page ends before its entries have more than 8 MiB of fields; one larger entry is a page by itself.',
    query: auditQuery,
    status: 200,
    answer: auditPageOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<ReturnType<typeof pageToShow>> {
    const { limit = 50, cursor, ...filter } = checkInput(auditQuery, query);
    return pageToShow(await this.reader.list({ ...filter, after: cursor }, limit));
  }
}
