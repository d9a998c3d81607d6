import pg from 'pg';
import { startPrivateServers } from '../private-servers.mjs';
import { withRedis } from './locks.mjs';

/** @typedef {import('../private-servers.mjs').PrivateServers} PrivateServers */

/**
 * The servers of a run, each of which a scenario may break and must heal, and a fresh place on them for every scenario.
 */
export class FaultyServers {
  #places = 0;

  /** @param {PrivateServers} servers */
  constructor(servers) {
    this.servers = servers;
  }

  /** @param {(line: string) => void} log */
  static async start(log) {
    return new FaultyServers(await startPrivateServers(log));
  }

  get postgres() {
    return this.servers.postgres;
  }

  get rabbitmq() {
    return this.servers.rabbitmq;
  }

  get redis() {
    return this.servers.redis;
  }

  async stop() {
    await this.servers.stop();
  }

  /** Starts all of them again, with their data. */
  async heal() {
    await this.redis.thaw();
    await Promise.all([this.postgres.start(), this.rabbitmq.start(), this.redis.start()]);
    await this.emptyRedis();
    await this.endMemoryAlarm();
  }

  /**
   * A database, a Redis database and queues that no scenario has used.
   * @returns {Promise<Record<string, string>>} settings of Heraut
   */
  async freshPlace() {
    this.#places += 1;
    const database = `faults_${this.#places}`;
    const client = new pg.Client({ connectionString: this.postgres.url });
    await client.connect();
    await client.query(`CREATE DATABASE ${database}`);
    await client.end();
    const databaseUrl = new URL(this.postgres.url);
    databaseUrl.pathname = database;
    const redisUrl = new URL(this.redis.url);
    redisUrl.pathname = `/${this.#places}`;
    return {
      DATABASE_URL: databaseUrl.href,
      AMQP_URL: this.rabbitmq.url,
      QUEUE_PREFIX: database,
      REDIS_URL: redisUrl.href,
      CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8', // the receiver is on this machine
    };
  }

  async flushRedis() {
    await withRedis(this.redis.url, (redis) => redis.flushall());
  }

  /** Redis refuses every write that needs memory, and evicts nothing, until `emptyRedis`. */
  async fillRedis() {
    await withRedis(this.redis.url, (redis) => redis.config('SET', 'maxmemory', '1'));
  }

  async emptyRedis() {
    await withRedis(this.redis.url, (redis) => redis.config('SET', 'maxmemory', '0'));
  }

  /** Blocks every publisher, as a broker does whose memory is full, until `endMemoryAlarm`. */
  async memoryAlarm() {
    await this.servers.rabbitmqctl('set_vm_memory_high_watermark', '0.0001');
  }

  async endMemoryAlarm() {
    await this.servers.rabbitmqctl('set_vm_memory_high_watermark', '0.6');
  }
}
