import { Module } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { HealthChecks } from './health-checks.service.js';
import { HealthController } from './health.controller.js';
import { migrationsHaveRun, postgresAnswers, roleIsAlive } from './ledger-checks.js';

@Module({ controllers: [HealthController], providers: [HealthChecks] })
export class HealthModule {
  constructor(checks: HealthChecks, postgres: Postgres) {
    checks.register(postgresAnswers(postgres));
    checks.register(migrationsHaveRun(postgres));
    checks.register(roleIsAlive(postgres, 'worker', 'nothing is delivered'));
    checks.register(roleIsAlive(postgres, 'dispatcher', 'nothing is retried'));
  }
}
