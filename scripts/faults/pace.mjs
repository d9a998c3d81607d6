/** @typedef {import('./stage.mjs').Stage} Stage */

/** The lengths of a scenario: in full, with --quick, and among the tests. */
const paces = {
  full: {
    rounds: 5,
    // Past its lock, its sign of life in Redis, its heartbeat in Postgres, and the leases.
    frozenMs: 22_000,
    // Past the heartbeats that RabbitMQ would wait for by its own count.
    frozenInOrderMs: 70_000,
    cuttingMs: 14_000,
    withoutRedisMs: 15_000,
    outageMs: 300_000,
    flappingMs: 120_000,
    standstillMs: 300_000,
    standing: 50_000,
    wiped: 10_000,
  },
  quick: {
    rounds: 2,
    frozenMs: 8000,
    frozenInOrderMs: 50_000,
    cuttingMs: 5000,
    withoutRedisMs: 5000,
    outageMs: 15_000,
    flappingMs: 30_000,
    standstillMs: 40_000,
    standing: 2500,
    wiped: 2000,
  },
  brief: {
    rounds: 1,
    frozenMs: 6000,
    frozenInOrderMs: 50_000,
    cuttingMs: 3000,
    withoutRedisMs: 2000,
    outageMs: 3000,
    flappingMs: 10_000,
    standstillMs: 25_000,
    standing: 500,
    wiped: 500,
  },
};
/** @typedef {keyof typeof paces} Pace */

/** @param {Stage} stage */
export const paceOf = (stage) => paces[stage.environment.pace];

/** @param {Stage} stage */
export const roundsOf = (stage) => Array.from({ length: paceOf(stage).rounds });
