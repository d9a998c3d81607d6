import { availableParallelism, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Role } from '../config/server-settings.js';
import type { Settings } from '../config/settings.js';
import { cpuQuota } from './cpu-quota.js';

/** Of one process under load; with less each, the system would end processes for want of memory. */
const bytesPerProcess = 512 * 1024 * 1024;
/** The supervisor takes some 90 MB of the same limit, and the Node of a health check in a container 50 for a moment. */
const bytesBeside = 150 * 1024 * 1024;
/** The rest is its young objects, code, buffers and threads. */
const oldSpaceShare = 0.75;
/** Postgres' default: a `max_connections` of 100, of which 3 are for its superuser. */
const connections = 97;
/**
 * Each process has two pools of this size, one connection for health checks, and now and then uses two more for upkeep
 * (src/infra/postgres/postgres.ts).
 */
const [smallestPool, usualPool, otherConnections] = [2, 10, 3];
const mostProcesses = Math.floor(connections / (2 * smallestPool + otherConnections));

export interface Machine {
  cores: number;
  memoryBytes: number;
  /** Whether a control group sets the limit: the system ends a process for going beyond it. */
  isLimited: boolean;
}

/** As much of it as this process may use. */
export function thisMachine(): Machine {
  // 0, or a number beyond the machine's memory, where a control group sets no limit.
  const limit = process.constrainedMemory() || Infinity;
  const cores = Math.max(1, Math.floor(Math.min(availableParallelism(), cpuQuota())));
  return { cores, memoryBytes: Math.min(totalmem(), limit), isLimited: limit < totalmem() };
}

type Planned = Pick<
  Settings,
  'PROCESSES' | 'ROLES' | 'DATABASE_URL' | 'AMQP_URL' | 'DATABASE_POOL_SIZE' | 'MAX_IN_FLIGHT_PER_ENDPOINT'
>;

/**
 * Of libuv, for each process; half of them may wait for the addresses of names (src/outbound/shared-lookup.ts). With
 * the usual 4, two names without an answer would keep all others waiting.
 */
export const threads = 16;

/**
 * How many processes `PROCESSES` means here. `auto` keeps to the connections that a usual Postgres allows, unless the
 * `environment` says how many a process may have.
 */
export function countProcesses(
  settings: Planned,
  environment: Record<string, string | undefined>,
  { cores, memoryBytes }: Machine,
): number {
  if (!settings.DATABASE_URL || rolesOf(settings, 2).length === 0) return 1;
  if (settings.PROCESSES !== 'auto') return settings.PROCESSES;
  const most = environment.DATABASE_POOL_SIZE ? Infinity : mostProcesses;
  return Math.max(1, Math.min(cores, most, Math.floor((memoryBytes - bytesBeside) / bytesPerProcess)));
}

/**
 * The options of V8 for each of `count` processes: left to itself each would let its garbage grow as if the whole limit
 * were its own, and the system would end one of them. Never more than V8 would take, nor less than `auto` counts with.
 * @param heapOfV8 bytes that V8 would let a heap have here
 */
export function heapOptions(
  count: number,
  { memoryBytes, isLimited }: Machine,
  options: string,
  heapOfV8 = getHeapStatistics().heap_size_limit,
): string[] {
  if (!isLimited || /max[-_](old[-_]space|heap)[-_]size/.test(options)) return [];
  const share = Math.max(bytesPerProcess, (memoryBytes - bytesBeside) / count) * oldSpaceShare;
  if (share >= heapOfV8) return [];
  return [`--max-old-space-size=${Math.floor(share / 1024 / 1024)}`];
}

/**
 * The variables of process `number` (from 1) of `count` that differ from those of the supervisor: what the processes
 * share is divided, so that an installation asks of its database and of a receiver what one process would, or little
 * more (docs/decisions/0023).
 * @param isFirstStart whether no process has served yet
 */
export function environmentOf(
  settings: Planned,
  environment: Record<string, string | undefined>,
  number: number,
  count: number,
  isFirstStart: boolean,
): Record<string, string> {
  const share = Math.floor((connections / count - otherConnections) / 2);
  const pool = Math.min(usualPool, Math.max(smallestPool, share));
  const perEndpoint = Math.max(1, Math.floor(settings.MAX_IN_FLIGHT_PER_ENDPOINT / count));
  return {
    ROLES: rolesOf(settings, number).join(),
    // The first process has applied it before the others start. One that takes the place of that first one would undo
    // what was changed by the API since, and would not start with a file that has a mistake by now.
    ...(!(isFirstStart && number === 1) && { CONFIG_FILE: '' }),
    DATABASE_POOL_SIZE: environment.DATABASE_POOL_SIZE || String(pool),
    MAX_IN_FLIGHT_PER_ENDPOINT: String(perEndpoint),
    UV_THREADPOOL_SIZE: environment.UV_THREADPOOL_SIZE || String(threads),
  };
}

/**
 * One process dispatches for all: more would repeat its statements each second, and compete for the same rows. With the
 * queue in memory each has to, because it can hand out to its own worker only.
 */
function rolesOf({ ROLES, AMQP_URL }: Planned, number: number): Role[] {
  return number === 1 || !AMQP_URL ? ROLES : ROLES.filter((role) => role !== 'dispatcher');
}
