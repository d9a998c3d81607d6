import type { Role } from '../config/settings.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { PartDown, type HealthCheck } from './check-health.js';

/*
 * These use TypeORM's pool, not the hot path's: when all connections of the hot path are busy, the process is loaded, not ill.
 */

export function postgresAnswers(postgres: Postgres): HealthCheck {
  return {
    name: 'postgres',
    stops: ['api', 'worker', 'dispatcher'],
    check: async () => {
      await postgres.dataSource.query('SELECT 1');
    },
  };
}

export function migrationsHaveRun(postgres: Postgres): HealthCheck {
  // What has run stays run, and a process knows no more migrations than it started with.
  let haveRun = false;
  return {
    name: 'migrations',
    stops: ['api', 'worker', 'dispatcher'],
    check: async () => {
      haveRun ||= !(await postgres.hasPendingMigrations());
      if (!haveRun) throw new PartDown('not all migrations have run; a starting process runs them');
    },
  };
}

/** By the heartbeats of all processes, so that each can tell what is missing in the whole installation. */
export function roleIsAlive(postgres: Postgres, role: Role, consequence: string): HealthCheck {
  return {
    name: role,
    stops: [role],
    check: async () => {
      const alive = await postgres.dataSource.query<unknown[]>(
        'SELECT FROM process WHERE $1 = ANY (roles) AND expires_at > now() LIMIT 1',
        [role],
      );
      if (alive.length === 0) throw new PartDown(`no process with the role ${role} is alive: ${consequence}`);
    },
  };
}
