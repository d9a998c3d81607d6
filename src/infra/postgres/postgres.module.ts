import { Global, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Postgres } from './postgres.js';

/** The opened database as `Postgres` (hot path) and as TypeORM's `DataSource` (the rest). */
@Global()
@Module({})
export class PostgresModule implements OnApplicationShutdown {
  constructor(private readonly postgres: Postgres) {}

  static with(postgres: Postgres): DynamicModule {
    return {
      module: PostgresModule,
      imports: [
        TypeOrmModule.forRootAsync({
          useFactory: () => postgres.dataSource.options,
          dataSourceFactory: () => Promise.resolve(postgres.dataSource),
        }),
      ],
      providers: [{ provide: Postgres, useValue: postgres }],
      exports: [Postgres],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.postgres.close();
  }
}
