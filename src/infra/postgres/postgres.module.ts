import { Global, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { Postgres } from './postgres.js';

/** The opened database. */
@Global()
@Module({})
export class PostgresModule implements OnApplicationShutdown {
  constructor(private readonly postgres: Postgres) {}

  static with(postgres: Postgres): DynamicModule {
    return {
      module: PostgresModule,
      providers: [{ provide: Postgres, useValue: postgres }],
      exports: [Postgres],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.postgres.close();
  }
}
