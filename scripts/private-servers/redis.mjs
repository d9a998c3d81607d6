import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { PrivateServer } from './private-server.mjs';

/**
 * @param {object} place
 * @param {string} place.program
 * @param {string} place.directory
 * @param {number} place.port
 * @param {boolean} place.isCluster
 * @param {(line: string) => void} place.tellGuardian
 */
export function redis({ program, directory, port, isCluster, tellGuardian }) {
  mkdirSync(directory, { recursive: true });
  const options = {
    port,
    bind: '127.0.0.1',
    dir: directory,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    // One for each test that wants one for itself.
    databases: 4096,
    'cluster-enabled': isCluster ? 'yes' : 'no',
  };
  return new PrivateServer({
    name: 'Redis',
    url: `redis://127.0.0.1:${port}`,
    logFile: join(directory, '..', 'redis.log'),
    spawn: (output) =>
      spawn(
        program,
        Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
        { cwd: directory, detached: true, stdio: ['ignore', output, output] },
      ),
    isReady: () => answersPing(port),
    stopSignal: 'SIGTERM',
    killSignal: 'SIGKILL',
    erase: () => {
      rmSync(directory, { recursive: true, force: true });
      mkdirSync(directory);
    },
    tellGuardian,
  });
}

/**
 * While Redis loads its data it accepts connections but answers -LOADING.
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function answersPing(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write('PING\r\n'));
    socket.once('data', (answer) => {
      socket.destroy();
      resolve(answer.toString().startsWith('+PONG'));
    });
    socket.once('error', () => resolve(false));
  });
}
