import { spawnSync } from 'node:child_process';
import { freePort } from './private-server.mjs';

const composeFile = new URL('../../docker/compose.test.yml', import.meta.url).pathname;

/** @typedef {import('./private-server.mjs').PrivateServer} PrivateServer */
/** @typedef {Pick<PrivateServer, 'url' | 'pid' | 'start' | 'stop' | 'kill9' | 'freeze' | 'thaw' | 'restart' | 'wipe'>} Controls */

/**
 * The same three servers as containers, for machines that have none of the programs.
 * @param {string} project
 * @param {{ isRedisCluster: boolean }} options
 * @returns {Promise<{
 *   postgres: Controls, rabbitmq: Controls, redis: Controls,
 *   rabbitmqctl: (...words: string[]) => Promise<void>, down: () => void,
 * }>}
 */
export async function composeServers(project, { isRedisCluster }) {
  const ports = { postgres: await freePort(), rabbitmq: await freePort(), redis: await freePort() };
  const environment = {
    ...process.env,
    POSTGRES_PORT: String(ports.postgres),
    RABBITMQ_PORT: String(ports.rabbitmq),
    REDIS_PORT: String(ports.redis),
    REDIS_CLUSTER: isRedisCluster ? 'yes' : 'no',
  };
  /** @param {string[]} words */
  const compose = (...words) => {
    const { status, stdout, stderr } = spawnSync('docker', ['compose', '-p', project, '-f', composeFile, ...words], {
      encoding: 'utf8',
      env: environment,
    });
    if (status !== 0) throw new Error(`docker compose ${words.join(' ')} failed.\n${stderr}`);
    return stdout.trim();
  };
  compose('up', '--detach', '--wait');
  return {
    postgres: container('postgres', `postgres://heraut@127.0.0.1:${ports.postgres}/postgres`),
    rabbitmq: container('rabbitmq', `amqp://heraut:heraut@127.0.0.1:${ports.rabbitmq}`),
    redis: container('redis', `redis://127.0.0.1:${ports.redis}`),
    rabbitmqctl: async (...words) => void compose('exec', '-T', 'rabbitmq', 'rabbitmqctl', '--quiet', ...words),
    down: () => void compose('down', '--volumes'),
  };

  /**
   * @param {keyof typeof ports} service
   * @param {string} url
   * @returns {Controls}
   */
  function container(service, url) {
    const start = async () => void compose('up', '--detach', '--wait', '--no-recreate', service);
    const stop = async () => void compose('stop', service);
    const kill9 = async () => void compose('kill', '--signal', 'SIGKILL', service);
    return {
      url,
      get pid() {
        const id = compose('ps', '--quiet', service);
        const { stdout } = spawnSync('docker', ['inspect', '--format', '{{.State.Pid}}', id], { encoding: 'utf8' });
        return Number(stdout) || undefined;
      },
      start,
      stop,
      kill9,
      freeze: async () => void compose('pause', service),
      thaw: async () => void compose('unpause', service),
      restart: async () => {
        await stop();
        await start();
      },
      wipe: async () => {
        compose('rm', '--stop', '--force', '--volumes', service);
        await start();
      },
    };
  }
}
