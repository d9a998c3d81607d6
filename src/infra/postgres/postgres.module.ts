import {
  Global,
  Logger,
  Module,
  type DynamicModule,
  type BeforeApplicationShutdown,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Heartbeat } from './heartbeat.service.js';
import { Postgres } from './postgres.js';

/** The opened database as `Postgres` (hot path) and as TypeORM's `DataSource` (the rest). */
@Global()
@Module({})
export class PostgresModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly logger = new Logger(PostgresModule.name);

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
  ) {}

  static with(postgres: Postgres): DynamicModule {
    return {
      module: PostgresModule,
      imports: [
        TypeOrmModule.forRootAsync({
          useFactory: () => postgres.dataSource.options,
          dataSourceFactory: () => Promise.resolve(postgres.dataSource),
        }),
      ],
      providers: [{ provide: Postgres, useValue: postgres }, Heartbeat],
      exports: [Postgres, Heartbeat],
    };
  }

  /** Before TypeORM closes what the embedded database's only connection is. The worker has nothing in hand any more. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.heartbeat.stop().catch((error: unknown) => {
      this.logger.warn({ event: 'heartbeat.failed', error }); // it ends by itself, only later
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.postgres.close();
  }
}
