import { Get } from '@nestjs/common';
import { AdminController } from '../auth/auth.decorators.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { reportToShow, retentionOutput } from './retention-output.js';
import { RetentionReports } from './retention-report.service.js';

@AdminController('retention', 'retention')
export class RetentionController {
  constructor(private readonly reports: RetentionReports) {}

  @Get()
  @AdminOperation({
    id: 'retention_read',
    summary: 'How long what is kept, and what retention did with each day.',
    status: 200,
    answer: retentionOutput,
  })
  async read(): Promise<ReturnType<typeof reportToShow>> {
    return reportToShow(await this.reports.read());
  }
}
