import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PrivateServer } from './private-server.mjs';

/**
 * @param {object} place
 * @param {string} place.binaries directory of `postgres` and `initdb`
 * @param {string} place.directory
 * @param {number} place.port
 * @param {boolean} place.fsync
 * @param {(line: string) => void} place.tellGuardian
 */
export function postgres({ binaries, directory, port, fsync, tellGuardian }) {
  const data = join(directory, 'data');
  const owner = unprivilegedUser();
  mkdirSync(directory, { recursive: true });
  if (owner) chownSync(directory, owner.uid, owner.gid);
  const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  initialise();
  return new PrivateServer({
    name: 'PostgreSQL',
    url: `postgres://heraut@127.0.0.1:${port}/postgres`,
    logFile: join(directory, '..', 'postgres.log'),
    spawn: (output) =>
      spawn(join(binaries, 'postgres'), ['-D', data], {
        cwd: directory,
        env: environment,
        detached: true,
        stdio: ['ignore', output, output],
        ...owner,
      }),
    isReady: (child) => isReady(data, child.pid),
    stopSignal: 'SIGINT', // "fast": ends sessions instead of waiting for them
    // "immediate": no checkpoint, as a crash. SIGKILL would leave the children and their shared memory behind.
    killSignal: 'SIGQUIT',
    erase: () => {
      rmSync(data, { recursive: true, force: true });
      initialise();
    },
    tellGuardian,
  });

  function initialise() {
    const options = ['-U', 'heraut', '--auth=trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'];
    execFileSync(join(binaries, 'initdb'), ['-D', data, ...options], { cwd: directory, env: environment, ...owner });
    const settings = {
      listen_addresses: "'127.0.0.1'",
      port,
      unix_socket_directories: "''",
      // Parallel test workers, each with several processes under test.
      max_connections: 400,
      fsync: fsync ? 'on' : 'off',
      // Against pages that a failing disk wrote by halves, which is nothing for one that is not waited for.
      full_page_writes: fsync ? 'on' : 'off',
      // It comes by one of the many databases of tests at any moment: the plans in one, and what a vacuum finds there,
      // would depend on when.
      autovacuum: fsync ? 'on' : 'off',
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
    appendFileSync(join(data, 'postgresql.conf'), lines.join(''));
  }
}

/**
 * Line 8 of postmaster.pid says whether connections are accepted; it is what `pg_ctl -w` waits for. Line 1 is the pid:
 * after a crash the file is still that of the process before.
 * @param {string} data
 * @param {number | undefined} pid
 */
function isReady(data, pid) {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
  } catch {
    return false; // not written yet
  }
}

/** PostgreSQL refuses to run as root. */
function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined;
  for (const user of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, user], { encoding: 'utf8' }));
    if (uid?.status === 0 && gid?.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user "postgres" nor "nobody".');
}
