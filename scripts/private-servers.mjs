import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { composeServers } from './private-servers/compose.mjs';
import { postgres } from './private-servers/postgres.mjs';
import { freePort } from './private-servers/private-server.mjs';
import { findOrInstallPrograms } from './private-servers/programs.mjs';
import { rabbitmq } from './private-servers/rabbitmq.mjs';
import { redis } from './private-servers/redis.mjs';

/** @typedef {import('./private-servers/compose.mjs').Controls} Controls */

/**
 * @typedef {object} PrivateServers
 * @property {Controls} postgres
 * @property {Controls} rabbitmq
 * @property {Controls} redis
 * @property {(...words: string[]) => Promise<void>} rabbitmqctl RabbitMQ's own tool
 * @property {{ TEST_DATABASE_URL: string, TEST_AMQP_URL: string, TEST_REDIS_URL: string }} environment for the tests
 * @property {() => Promise<void>} stop ends all of them and removes their data
 */

const guardianFile = new URL('./private-servers/guardian.mjs', import.meta.url).pathname;
const rabbitmqConf = new URL('../rabbitmq.conf', import.meta.url).pathname;

/**
 * Starts a PostgreSQL, a RabbitMQ and a Redis of our own on free loopback ports, with their data in a temporary
 * directory. However this process ends, they end with it.
 * @param {(line: string) => void} [log]
 * @param {object} [options]
 * @param {boolean} [options.fsync] false: PostgreSQL does not wait for the disk. Its writes survive its own crash all
 *   the same, only not that of the machine; and it vacuums nothing of itself: for tests, not for measurements
 * @param {boolean} [options.isRedisCluster] one shard, which has no slots yet
 * @returns {Promise<PrivateServers>}
 */
export async function startPrivateServers(log = () => {}, { fsync = true, isRedisCluster = false } = {}) {
  const programs = findOrInstallPrograms(log);
  if (!programs) {
    const guardian = startGuardian();
    const project = `heraut-test-${randomBytes(4).toString('hex')}`;
    guardian.tell(`c ${project}`);
    const { down, ...servers } = await composeServers(project, { isRedisCluster });
    const stop = async () => {
      down();
      await guardian.end();
    };
    return { ...servers, environment: environmentOf(servers), stop };
  }

  const { directory, tellGuardian, remove } = makeGuardedDirectory('servers');
  chmodSync(directory, 0o755); // PostgreSQL runs as another user when we are root
  const place = (/** @type {string} */ name) => ({ directory: join(directory, name), tellGuardian });
  const database = postgres({
    ...place('postgres'),
    binaries: programs.postgresBinaries,
    port: await freePort(),
    fsync,
  });
  const cache = redis({
    ...place('redis'),
    program: programs.redisServer,
    port: await freePort(),
    isCluster: isRedisCluster,
  });
  const { broker, portMapper, rabbitmqctl } = await rabbitmq({
    ...place('rabbitmq'),
    program: programs.rabbitmqServer,
    epmd: programs.epmd,
    configFile: rabbitmqConf,
    port: await freePort(),
  });
  const stop = async () => {
    await Promise.all([database.stop(), cache.stop(), broker.stop()]);
    await portMapper.stop();
    await remove();
  };
  try {
    await portMapper.start();
    await Promise.all([database.start(), cache.start(), broker.start()]);
  } catch (error) {
    await stop();
    throw error;
  }
  const servers = { postgres: database, rabbitmq: broker, redis: cache, rabbitmqctl };
  return { ...servers, environment: environmentOf(servers), stop };
}

/**
 * A Redis of our own, without the other two where they need not be started with it.
 * @param {object} [options]
 * @param {boolean} [options.isCluster] one shard, which has no slots yet
 * @returns {Promise<{ redis: Controls, stop: () => Promise<void> }>}
 */
export async function startPrivateRedis({ isCluster = false } = {}) {
  const programs = findOrInstallPrograms(() => {});
  if (!programs) return startPrivateServers(() => {}, { isRedisCluster: isCluster });
  const port = await freePort();
  const { server, stop } = await startAlone('redis', (place) =>
    redis({ ...place, program: programs.redisServer, port, isCluster }),
  );
  return { redis: server, stop };
}

/**
 * A PostgreSQL of our own, without the other two; it vacuums nothing of itself.
 * @returns {Promise<{ postgres: Controls, stop: () => Promise<void> }>}
 */
export async function startPrivatePostgres() {
  const programs = findOrInstallPrograms(() => {});
  if (!programs) return startPrivateServers();
  const port = await freePort();
  const { server, stop } = await startAlone('postgres', (place) =>
    postgres({ ...place, binaries: programs.postgresBinaries, port, fsync: false }),
  );
  return { postgres: server, stop };
}

/**
 * @template {Controls} T
 * @param {string} name
 * @param {(place: { directory: string, tellGuardian: (line: string) => void }) => T} make
 */
async function startAlone(name, make) {
  const { directory, tellGuardian, remove } = makeGuardedDirectory(name);
  chmodSync(directory, 0o755); // PostgreSQL runs as another user when we are root
  const server = make({ directory: join(directory, name), tellGuardian });
  const stop = async () => {
    await server.stop();
    await remove();
  };
  try {
    await server.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return { server, stop };
}

/** @param {{ postgres: Controls, rabbitmq: Controls, redis: Controls }} servers */
function environmentOf({ postgres, rabbitmq, redis }) {
  return { TEST_DATABASE_URL: postgres.url, TEST_AMQP_URL: rabbitmq.url, TEST_REDIS_URL: redis.url };
}

/** Ends the registered processes when this process ends (guardian.mjs says how to register one). */
export function startGuardian() {
  const guardian = spawn(process.execPath, [guardianFile], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A Ctrl-C at the terminal goes to the whole process group; the guardian has to outlive ours.
    detached: true,
    env: { PATH: process.env.PATH },
  });
  guardian.unref();
  // A pipe is a socket to Node; the declared type is wider.
  /** @type {import('node:net').Socket} */ (guardian.stdin).unref();
  const ended = once(guardian, 'exit');
  return {
    tell: (/** @type {string} */ line) => void guardian.stdin.write(`${line}\n`),
    /** Ends the registered processes, then itself. Without this call a process may wait for ever at its own end. */
    end: async () => {
      guardian.ref();
      guardian.stdin.end();
      await ended;
    },
  };
}

/**
 * A directory for the files of a run, with a guardian that removes it however this process ends.
 * @param {string} name
 * @param {string} [parent]
 */
export function makeGuardedDirectory(name, parent = tmpdir()) {
  const guardian = startGuardian();
  const directory = mkdtempSync(join(parent, `heraut-${name}-`));
  guardian.tell(`d ${directory}`);
  /** `remove` ends the registered processes first, and the guardian last. */
  return { directory, tellGuardian: guardian.tell, remove: guardian.end };
}

// Run by itself: servers to develop against, until Ctrl-C.
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const servers = await startPrivateServers((line) => console.error(line));
  for (const [name, value] of Object.entries(servers.environment)) console.log(`export ${name}=${value}`);
  console.error('Ctrl-C stops them.');
  const untilSignal = setInterval(() => {}, 60_000);
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.once(signal, () => {
      clearInterval(untilSignal);
      void servers.stop();
    });
  }
}
