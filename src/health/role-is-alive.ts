import type { Role } from '../config/settings.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { PartDown, type HealthCheck } from './check-health.js';

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
