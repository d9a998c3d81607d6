import type { Redis } from 'ioredis';
import { troubleWithAlerts } from '../alerts/notes-are-sent.js';
import type { Role } from '../config/server-settings.js';
import { isRedisGivenUp } from '../idempotency/redis-outage.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { hasNoConnectionLeft, isClosedAtOnce, isReadOnly } from '../infra/postgres/postgres-errors.js';
import { refusalOf } from '../infra/rabbitmq/connection-advice.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { lanes, type DeliveryQueue } from '../queue/delivery-queue.js';
import { LaneSilent } from '../queue/lane-silent.js';
import { answerWithin, PartDown, PartShort, type HealthCheck } from './check-health.js';

/**
 * After something did not fit. A process that dispatches writes what it measures every ten seconds, and one that gets
 * no requests would not try again.
 */
const diskFullForMs = 30_000;

/**
 * On the connection of health checks: when all others are busy, the process is busy, not broken; but for where those of
 * the hot path are for longer than it counts as alive. To answer is not enough: a standby does, and a server whose disk
 * is full; that one even writes heartbeats, which need no more room.
 */
export function postgresWorks(postgres: Postgres, heartbeat: Heartbeat): HealthCheck {
  return {
    name: 'postgres',
    stops: ['api', 'worker', 'dispatcher'],
    check: async () => {
      await inWords(postgres.tryWriting());
      if (performance.now() - postgres.diskFullAt < diskFullForMs) throw new PartDown('its disk is full');
      if (heartbeat.hasExpired) throw new PartDown('this process could not write its heartbeat to it for 10 s');
      const { refusal } = postgres.checks;
      if (refusal !== undefined)
        throw new PartShort(`${noMoreConnections}; those that are open go on`, { cause: refusal });
    },
  };
}

const noMoreConnections = 'Postgres gives no more connections';

/** The message of an error of Postgres may name hosts and roles, and its code alone says little. */
async function inWords<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const words = wordsFor(error);
    throw words === undefined ? error : new PartDown(words, { cause: error });
  }
}

function wordsFor(error: unknown): string | undefined {
  if (isReadOnly(error)) return 'it can only be read: it is a standby, or set to be read-only';
  if (hasNoConnectionLeft(error)) return noMoreConnections;
  if (isClosedAtOnce(error)) return 'no connection to Postgres: it was closed at once';
  return undefined;
}

export function migrationsHaveRun(postgres: Postgres): HealthCheck {
  // Migrations that have run stay run, and a process learns of no new ones after its start.
  let haveRun = false;
  return {
    name: 'migrations',
    stops: ['api', 'worker', 'dispatcher'],
    check: async () => {
      haveRun ||= !(await inWords(postgres.hasPendingMigrations()));
      if (!haveRun) throw new PartDown('not all migrations have run; a starting process runs them');
    },
  };
}

/** Publishing is accepted without RabbitMQ: the deliveries wait in the ledger. */
export function rabbitMqWorks(queue: DeliveryQueue): HealthCheck {
  return {
    name: 'rabbitmq',
    stops: ['worker', 'dispatcher'],
    check: async () => {
      const { trouble } = queue;
      const refusal = trouble === undefined ? undefined : refusalOf(trouble);
      if (refusal) throw new PartDown(refusal.reason, { cause: trouble });
      if (trouble instanceof LaneSilent) {
        const goesOn = lanes.some((lane) => queue.accepts(lane));
        throw new (goesOn ? PartShort : PartDown)(trouble.message, { cause: trouble });
      }
      if (trouble !== undefined) throw trouble;
    },
  };
}

/** It stops nobody: the rest waits in the ledger, and workers that are added meanwhile must count as ready. */
export function queueTakesAll(queue: DeliveryQueue): HealthCheck {
  return {
    name: 'queue',
    stops: [],
    check: async () => {
      const { refusal } = queue;
      if (refusal !== undefined)
        throw new PartDown(refusalOf(refusal)?.reason ?? 'it refuses a message', { cause: refusal });
      const [lane] = queue.fullLanes;
      if (lane === undefined) return;
      throw new PartDown(`the queue of the lane ${lane} is full: what does not fit waits in the ledger`);
    },
  };
}

/**
 * A probe of Kubernetes waits for one second unless it is told otherwise, and a frozen Redis must not be what takes
 * every api process out of service: it stops none of them.
 */
const redisAnswersWithinMs = 500;

/**
 * Without Redis, deliveries are locked in Postgres: it costs speed, and stops nothing for longer than the change takes.
 */
export function redisIsInUse(redis: Redis, postgres: Postgres): HealthCheck {
  return {
    name: 'redis',
    stops: [],
    check: async () => {
      await answerWithin(redisAnswersWithinMs, redis.ping());
      const isGivenUp = await isRedisGivenUp(postgres).catch(() => false); // that Postgres is down, its own check says
      if (isGivenUp) {
        throw new PartDown('a worker could not use it: deliveries are locked in Postgres until all workers can again');
      }
    },
  };
}

/** Nothing else depends on it: deliveries go on. */
export function alertsAreSent(postgres: Postgres): HealthCheck {
  return {
    name: 'alerts',
    stops: [],
    check: async () => {
      const trouble = await inWords(troubleWithAlerts(postgres));
      if (trouble !== undefined) throw new PartDown(trouble);
    },
  };
}

/** By the heartbeats of all processes, so that each process can name the roles missing in the whole installation. */
export function roleIsAlive(heartbeat: Heartbeat, role: Role, consequence: string): HealthCheck {
  return {
    name: role,
    stops: [role],
    check: async () => {
      if (await inWords(heartbeat.isAlive(role))) return;
      throw new PartDown(`no process with the role ${role} is alive: ${consequence}`);
    },
  };
}
