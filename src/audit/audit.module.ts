import { Module, type OnModuleInit } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { makeMonthsAhead } from './months-kept.js';

/** Changes, and who made them: see `AuditLog`. */
@Module({})
export class AuditModule implements OnModuleInit {
  constructor(private readonly postgres: Postgres) {}

  async onModuleInit(): Promise<void> {
    await makeMonthsAhead(this.postgres);
  }
}
