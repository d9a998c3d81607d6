import { Get, Inject } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { Config } from '../config/config.module.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { REDIS } from '../infra/redis/redis.module.js';
import { version } from '../infra/version.js';
import { readMeasured } from '../ledger/last-measured.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { DeliveryQueue } from '../queue/delivery-queue.js';
import { installationOutput } from './installation-io.js';
import { mostProcesses, processToShow } from './process-output.js';
import { databaseOf, locksOf, queueOf } from './servers.js';
import { settingsToShow } from './settings-to-show.js';

@AdminController('overview', 'installation')
export class InstallationController {
  constructor(
    private readonly postgres: Postgres,
    private readonly queue: DeliveryQueue,
    @Inject(REDIS) private readonly redis: Redis | null,
    private readonly heartbeat: Heartbeat,
    private readonly config: Config,
  ) {}

  @Get()
  @AdminOperation({
    id: 'installation_read',
    summary: 'The parts of this installation: processes, servers, versions, and settings that are no secret.',
    status: 200,
    answer: installationOutput,
  })
  async read(): Promise<z.output<typeof installationOutput>> {
    const [processes, database, locks, { size }] = await Promise.all([
      this.heartbeat.list(mostProcesses),
      databaseOf(this.postgres),
      locksOf(this.redis),
      readMeasured(this.postgres),
    ]);
    return {
      version,
      processes: processes.map((each) => processToShow(each, this.heartbeat.processId)),
      servers: {
        database: { ...database, bytes: size ? { measuredAt: size.at.toISOString(), bytes: size.found.bytes } : null },
        queue: queueOf(this.queue),
        locks,
      },
      settings: settingsToShow(this.config.settings),
    };
  }
}
