import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { accepts, freePort, PrivateServer } from './private-server.mjs';

/**
 * A node with its own Erlang port mapper, so that it neither meets nor needs another node of this machine.
 * @param {object} place
 * @param {string} place.program the real rabbitmq-server, not Debian's wrapper, which changes user and paths
 * @param {string} place.epmd
 * @param {string} place.configFile
 * @param {string} place.directory
 * @param {number} place.port
 * @param {(line: string) => void} place.tellGuardian
 */
export async function rabbitmq({ program, epmd, configFile, directory, port, tellGuardian }) {
  const inside = (/** @type {string} */ name) => join(directory, name);
  const [epmdPort, distributionPort] = [await freePort(), await freePort()];
  prepare();
  const environment = {
    PATH: process.env.PATH,
    LANG: 'C.UTF-8',
    HOME: inside('home'),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `heraut-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distributionPort),
    RABBITMQ_MNESIA_BASE: inside('mnesia'),
    RABBITMQ_LOG_BASE: inside('log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_ENABLED_PLUGINS_FILE: inside('enabled_plugins'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_CONFIG_FILE: configFile,
    RABBITMQ_ADVANCED_CONFIG_FILE: inside('none.config'),
    RABBITMQ_GENERATED_CONFIG_DIR: inside('generated'),
    RABBITMQ_PID_FILE: inside('rabbitmq.pid'),
    // Makes the start script replace itself by the broker, so that the child's pid is the broker's.
    RUNNING_UNDER_SYSTEMD: '1',
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
      '+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}',
  };
  const portMapper = new PrivateServer({
    name: 'epmd',
    url: `epmd://127.0.0.1:${epmdPort}`,
    logFile: join(directory, '..', 'epmd.log'),
    spawn: (output) =>
      spawn(epmd, ['-port', String(epmdPort), '-address', '127.0.0.1'], {
        cwd: directory,
        env: environment,
        detached: true,
        stdio: ['ignore', output, output],
      }),
    isReady: () => accepts(epmdPort),
    stopSignal: 'SIGTERM',
    killSignal: 'SIGKILL',
    erase: () => {},
    tellGuardian,
  });
  const broker = new PrivateServer({
    name: 'RabbitMQ',
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    logFile: join(directory, '..', 'rabbitmq.log'),
    spawn: (output) =>
      spawn(program, [], { cwd: directory, env: environment, detached: true, stdio: ['ignore', output, output] }),
    isReady: () => answersAmqp(port),
    stopSignal: 'SIGTERM',
    killSignal: 'SIGKILL',
    erase: () => {
      rmSync(inside('mnesia'), { recursive: true, force: true, maxRetries: 20 });
      prepare();
    },
    tellGuardian,
  });
  const rabbitmqctl = async (/** @type {string[]} */ ...words) => {
    const tool = join(dirname(program), 'rabbitmqctl');
    await promisify(execFile)(tool, ['--quiet', '--node', environment.RABBITMQ_NODENAME, ...words], {
      env: environment,
    });
  };
  return { broker, portMapper, rabbitmqctl };

  function prepare() {
    for (const name of ['home', 'mnesia', 'log', 'generated']) mkdirSync(inside(name), { recursive: true });
    const cookie = inside('home/.erlang.cookie');
    rmSync(cookie, { force: true });
    writeFileSync(cookie, `HERAUT${port}`);
    chmodSync(cookie, 0o400);
    writeFileSync(inside('enabled_plugins'), '[].');
  }
}

/**
 * Whether a broker opens the conversation. It listens a little earlier, and drops connections that come in between.
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function answersAmqp(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('AMQP\0\0\x09\x01'));
    const settle = (/** @type {boolean} */ answers) => {
      socket.destroy();
      resolve(answers);
    };
    socket.setTimeout(2000, () => settle(false));
    socket.once('data', () => settle(true));
    socket.once('error', () => settle(false));
    socket.once('close', () => settle(false));
  });
}
