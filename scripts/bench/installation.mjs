// The Heraut that is measured: as an operator runs it, on servers of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { startHeraut } from '../heraut-process.mjs';
import { startPrivateServers } from '../private-servers.mjs';
import { compiled, projectDirectory } from '../ready-to-run.mjs';
import { freePort } from '../private-servers/private-server.mjs';

const superuser = { clientId: 'bench', secret: 'for this benchmark only' };
/** Characters. */
const shownOutput = 2000;

/** @typedef {'api' | 'worker' | 'postgres' | 'rabbitmq' | 'redis'} Part */

/** @typedef {{ level: string, event: string, times: number, first: string }} Trouble `first`: the beginning of its first line */

/**
 * @typedef {object} Wish a subscription to be
 * @property {string} channel
 * @property {string} callbackUrl
 * @property {Record<string, string>} [filters]
 * @property {string} [guarantee] otherwise that of the installation
 */

/**
 * @typedef {object} Installation
 * @property {string} url of the API
 * @property {string} token
 * @property {string | undefined} databaseUrl undefined: it is embedded
 * @property {Partial<Record<Part, number>>} pids of the parts it has; embedded and with `processes`, `api` is all of Heraut
 * @property {(channel: string) => Promise<void>} createChannel
 * @property {(wish: Wish) => Promise<string>} subscribe gives the URL of the subscription
 * @property {(url: string) => Promise<void>} unsubscribe
 * @property {(policy: Record<string, number>) => Promise<void>} setRetryPolicy of every subscription
 * @property {() => Promise<string>} dispatchOnce one round of the dispatcher, as by `npm run dispatch -- --once`, on servers only; gives what it wrote if it failed
 * @property {() => Promise<Trouble[]>} troubles the events logged as a warning or worse
 * @property {() => Promise<void>} stop
 */

/**
 * @param {object} how
 * @param {boolean} how.embedded
 * @param {string | undefined} how.processes as the setting `PROCESSES`: then they have every role
 * @param {string} how.guarantee of the subscriptions
 * @param {string | undefined} how.cpuProf
 * @param {((postgres: import('../private-servers.mjs').Controls) => Promise<void>) | undefined} how.prepareDatabase
 *   before Heraut starts
 * @param {string} how.directory for logs and the embedded database
 * @param {string[]} how.filters of the channels
 * @param {(stop: () => Promise<void>) => void} how.onStarted is given a function that ends each thing that was started
 * @param {(line: string) => void} how.tellGuardian
 * @param {(line: string) => void} how.log
 * @returns {Promise<Installation>}
 */
export async function startInstallation({
  embedded,
  processes,
  guarantee,
  cpuProf,
  prepareDatabase,
  directory,
  filters,
  onStarted,
  tellGuardian,
  log,
}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const common = {
    SUPERUSER_CLIENT_ID: superuser.clientId,
    SUPERUSER_SECRET: superuser.secret,
    DATA_DIR: join(directory, 'data'),
    NODE_ENV: 'production',
    CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8', // the receivers are on this machine
  };
  const start = async (
    /** @type {string} */ name,
    /** @type {string} */ origin,
    /** @type {Record<string, string>} */ settings,
  ) => {
    // The processes of one installation have the same options: they make names of their own.
    const profileName = processes ? [] : [`--cpu-prof-name=${name}.cpuprofile`];
    const nodeOptions = cpuProf ? ['--cpu-prof', `--cpu-prof-dir=${resolve(cpuProf)}`, ...profileName] : [];
    if (cpuProf) mkdirSync(resolve(cpuProf), { recursive: true });
    const heraut = startHeraut({ name, directory, nodeOptions, settings: { ...common, ...settings }, tellGuardian });
    onStarted(heraut.stop);
    await heraut.untilReady(origin);
    return heraut;
  };
  /** @type {Partial<Record<Part, number>>} */
  let pids;
  /** @type {import('../heraut-process.mjs').HerautProcess[]} */
  let herauts;
  /** @type {Record<string, string>} */
  let servers = {};
  if (embedded) {
    log('starting Heraut on its embedded default …');
    const heraut = await start('heraut', url, { PORT: String(port) });
    herauts = [heraut];
    pids = { api: heraut.pid };
  } else {
    log('starting private PostgreSQL, RabbitMQ and Redis …');
    const { postgres, rabbitmq, redis, stop } = await startPrivateServers(log);
    onStarted(stop);
    await prepareDatabase?.(postgres);
    servers = { DATABASE_URL: postgres.url, AMQP_URL: rabbitmq.url, REDIS_URL: redis.url };
    pids = { postgres: postgres.pid, rabbitmq: rabbitmq.pid, redis: redis.pid };
    if (processes) {
      log(`starting one installation with PROCESSES=${processes} …`);
      const heraut = await start('heraut', url, { ...servers, PROCESSES: processes, PORT: String(port) });
      herauts = [heraut];
      pids.api = heraut.pid;
    } else {
      log('starting one api process and one worker and dispatcher process …');
      const api = await start('api', url, { ...servers, ROLES: 'api', PORT: String(port) });
      const workerPort = String(await freePort());
      const workerSettings = { ...servers, ROLES: 'worker,dispatcher', PORT: workerPort };
      const worker = await start('worker', `http://127.0.0.1:${workerPort}`, workerSettings);
      herauts = [api, worker];
      pids = { api: api.pid, worker: worker.pid, ...pids };
    }
  }
  const { makeToken } = await compiled('command-line/make-token.js');
  /** @type {string} */
  const token = makeToken(superuser.clientId, superuser.secret, Date.now());
  return {
    url,
    token,
    databaseUrl: servers.DATABASE_URL,
    pids,
    createChannel: async (channel) => {
      await call(token, 'POST', `${url}/api/v1/kanaal`, { naam: channel, filters });
    },
    subscribe: async (wish) => {
      const kanalen = [{ naam: wish.channel, filters: wish.filters ?? {} }];
      const deliveryGuarantee = wish.guarantee ?? guarantee;
      const abonnement = { callbackUrl: wish.callbackUrl, auth: 'Bearer bench', kanalen, deliveryGuarantee };
      const created = JSON.parse(await call(token, 'POST', `${url}/api/v1/abonnement`, abonnement));
      return created.url;
    },
    unsubscribe: async (subscription) => {
      await call(token, 'DELETE', subscription);
    },
    setRetryPolicy: async (policy) => {
      await call(token, 'PUT', `${url}/admin/v1/retry-policy`, policy);
    },
    dispatchOnce: () => dispatchOnce({ ...common, ...servers }),
    troubles: () => countTroubles(herauts.map((heraut) => heraut.logFile)),
    stop: async () => {
      await Promise.all(herauts.map((heraut) => heraut.stop()));
    },
  };
}

/**
 * @param {Record<string, string>} settings
 * @returns {Promise<string>} the end of its output where it failed; nothing where it did not
 */
async function dispatchOnce(settings) {
  const program = join(projectDirectory, 'dist/dispatch-once.js');
  const child = spawn(process.execPath, [program, '--once'], { env: { PATH: process.env.PATH, ...settings } });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output = `${output}${text}`.slice(-shownOutput)));
  const [status] = await once(child, 'close');
  return status === 0 ? '' : output;
}

/**
 * @param {string} token
 * @param {'POST' | 'PUT' | 'DELETE'} method
 * @param {string} url
 * @param {object} [body]
 * @returns {Promise<string>}
 */
async function call(token, method, url, body) {
  const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) };
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  return text;
}

/** @param {string[]} logFiles */
async function countTroubles(logFiles) {
  /** @type {Map<string, Trouble>} */
  const troubles = new Map();
  for (const file of logFiles) {
    for await (const line of createInterface({ input: createReadStream(file) })) {
      if (line === '' || line.startsWith('{"level":"info"')) continue;
      /** @type {{ level?: string, event?: string }} */
      const { level = 'output', event = line } = line.startsWith('{') ? JSON.parse(line) : {};
      const known = troubles.get(event) ?? { level, event, times: 0, first: line.slice(0, 600) };
      troubles.set(event, { ...known, times: known.times + 1 });
    }
  }
  return [...troubles.values()];
}
