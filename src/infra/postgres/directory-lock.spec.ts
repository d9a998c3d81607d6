import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs, { existsSync, readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataDirectoryInUse, lockDirectory } from './directory-lock.js';

const compiled = new URL('../../../dist/src/infra/postgres/directory-lock.js', import.meta.url).href;

describe('the lock of the data directory', () => {
  let parent: string;
  let directory: string;
  let lockFile: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'heraut-lock-'));
    directory = join(parent, 'data');
    lockFile = join(directory, 'heraut.lock');
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    for (const child of children.splice(0)) await end(child);
    await rm(parent, { recursive: true });
  });

  /** The same code in a process of its own. It holds the lock until it is killed. @returns its output after it tried */
  async function lockElsewhere(): Promise<{ child: ChildProcess; said: string }> {
    const program = join(parent, 'lock.mjs');
    await writeFile(
      program,
      `import { lockDirectory } from '${compiled}';
      process.on('SIGUSR2', () => process.exit(1));
      try { await lockDirectory(${JSON.stringify(directory)}); console.log('locked'); setInterval(() => {}, 60_000); }
      catch (error) { console.log(error.constructor.name + ' ' + error.message); }`,
    );
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const [said] = (await once(child.stdout!, 'data')) as [Buffer];
    return { child, said: said.toString().trim() };
  }

  async function end(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  const aSocket = expect.stringMatching(/^heraut\.socket\.[0-9a-f]{8}$/) as string;

  /** As the lock of a process looks from another container: its pid is there of another process, or of none. */
  async function seeFromElsewhere(changes: object): Promise<void> {
    const holder = JSON.parse(readFileSync(lockFile, 'utf8')) as object;
    await writeFile(lockFile, JSON.stringify({ ...holder, ...changes }));
  }

  const writeLock = async (holder: unknown) => {
    (await lockDirectory(directory))();
    await writeFile(lockFile, typeof holder === 'string' ? holder : JSON.stringify(holder));
  };

  it('makes the directory for its owner alone, and leaves nothing but itself and its socket', async () => {
    await lockDirectory(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
  });

  it('makes the directories above it that are missing, for their owner alone as well', async () => {
    directory = join(parent, 'not', 'yet', 'there');
    await lockDirectory(directory);
    for (const made of [directory, join(parent, 'not', 'yet'), join(parent, 'not')])
      expect((await stat(made)).mode & 0o777).toBe(0o700);
  });

  it('fails at once where no directory can be made, whatever the file system says of it', async () => {
    directory = '/proc/heraut/data'; // which is not there to whoever makes it, and its parent is
    expect((await lockElsewhere()).said).toMatch(/^Error E[A-Z]+: .*mkdir '\/proc/);
  });

  it('can be acquired again once it was released', async () => {
    const unlock = await lockDirectory(directory);
    unlock();
    expect(readdirSync(directory)).toEqual([]);
    await lockDirectory(directory);
    expect(existsSync(lockFile)).toBe(true);
  });

  it('is refused to a second process while the first lives, with the pid of the first', async () => {
    const { child, said } = await lockElsewhere();
    expect(said).toBe('locked');
    await expect(lockDirectory(directory)).rejects.toThrow(DataDirectoryInUse);
    await expect(lockDirectory(directory)).rejects.toThrow(`process ${child.pid}`);
    expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
  });

  it.each([{ pid: process.pid, startedAt: '1' }, { pid: 2 ** 22 + 1 }])(
    'is refused while its holder lives in another container with the same host name, and may be stopped there: %j',
    async (seen) => {
      const { child } = await lockElsewhere();
      child.kill('SIGSTOP');
      await seeFromElsewhere(seen);
      await expect(lockDirectory(directory)).rejects.toThrow(`${directory} is in use by process ${seen.pid}. Stop it`);
      expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
      await end(child);
      await lockDirectory(directory);
      expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
      expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
    },
  );

  it('is known to be held by a container with another host name that lives, and not to be deleted then', async () => {
    await lockElsewhere();
    await seeFromElsewhere({ pid: 1, host: 'another-container' });
    await expect(lockDirectory(directory)).rejects.toThrow(
      'is in use by process 1 on host another-container. Stop it first',
    );
  });

  it('is free after its holder was killed in another container of this machine', async () => {
    const { child } = await lockElsewhere();
    await seeFromElsewhere({ pid: 2 ** 22 + 1, host: 'another-container' });
    await end(child);
    await lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
    expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
  });

  it.each([
    { on: 'on another machine', boot: '00000000-0000-4000-8000-000000000000' },
    { on: 'by a version that does not say on which machine', boot: undefined },
    { on: 'through another mount of the same file system', device: 4_000_001 },
    { on: 'by a version that does not say through which mount', device: undefined },
  ])('stays with a holder of another host name that answers no more $on', async (seen) => {
    const { child } = await lockElsewhere();
    await seeFromElsewhere({ pid: 2 ** 22 + 1, host: 'another-host', ...seen });
    await end(child);
    await expect(lockDirectory(directory)).rejects.toThrow('If that host is gone for good, delete');
    expect(readFileSync(lockFile, 'utf8')).toContain('another-host');
  });

  it('stays with a holder in another container whose socket somebody has deleted', async () => {
    await lockElsewhere();
    await seeFromElsewhere({ pid: 2 ** 22 + 1, host: 'another-container' });
    for (const name of readdirSync(directory)) if (name.includes('socket')) await rm(join(directory, name));
    await expect(lockDirectory(directory)).rejects.toThrow('If that host is gone for good, delete');
  });

  it('is refused in the same way in a directory whose path is too long for the address of a socket', async () => {
    directory = join(parent, 'd'.repeat(120));
    lockFile = join(directory, 'heraut.lock');
    const { child } = await lockElsewhere();
    await seeFromElsewhere({ pid: 2 ** 22 + 1 });
    await expect(lockDirectory(directory)).rejects.toThrow(DataDirectoryInUse);
    await end(child);
    await lockDirectory(directory);
    expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
  });

  it('is judged by pid and start time where its holder could make no socket, or a version without made it', async () => {
    await lockElsewhere();
    await seeFromElsewhere({ socket: undefined });
    await expect(lockDirectory(directory)).rejects.toThrow(DataDirectoryInUse);
  });

  it.each(['EAFNOSUPPORT', 'EPERM'])('is judged by them as well in a process that may ask nobody: %s', async (code) => {
    const { child } = await lockElsewhere();
    vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket) {
      return this.destroy(Object.assign(new Error(`connect ${code}`), { code }));
    });
    await expect(lockDirectory(directory)).rejects.toThrow(`is in use by process ${child.pid}. Stop it`);
    await end(child);
    await lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
  });

  it('is refused where it cannot be told whether its holder lives, with the reason and a way on', async () => {
    const socket = 'heraut.socket.00000000';
    await writeLock({ pid: 2 ** 22 + 1, startedAt: '1', host: hostname(), socket });
    await symlink(socket, join(directory, socket)); // in circles
    await expect(lockDirectory(directory)).rejects.toThrow(DataDirectoryInUse);
    await expect(lockDirectory(directory)).rejects.toThrow(
      `ELOOP. Start as the user that it runs as. If it has ended, delete ${lockFile} and start again.`,
    );
    expect(existsSync(lockFile)).toBe(true);
  });

  it('is refused to another process while this one has it', async () => {
    await lockDirectory(directory);
    const { said } = await lockElsewhere();
    expect(said).toContain(`DataDirectoryInUse ${directory} is in use by process ${process.pid}`);
  });

  it('is refused to the process that has it already', async () => {
    await lockDirectory(directory);
    await expect(lockDirectory(directory)).rejects.toThrow(DataDirectoryInUse);
  });

  it('is free after its holder was killed', async () => {
    const { child } = await lockElsewhere();
    await end(child);
    expect(existsSync(lockFile)).toBe(true);
    await lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
    expect(readdirSync(directory)).toEqual(['heraut.lock', aSocket]);
  });

  it('is taken with an end to what killed processes have left, and to nothing of those that live', async () => {
    const living = await lockElsewhere();
    const itsSocket = readdirSync(directory).find((name) => name.startsWith('heraut.socket.'))!;
    await rename(lockFile, `${lockFile}.00000001`); // as while it is starting
    const killed = await lockElsewhere();
    await end(killed.child);
    await copyFile(lockFile, `${lockFile}.00000002`);
    await rm(lockFile);
    await writeFile(join(directory, 'heraut.socket.00000003'), '');
    await lockDirectory(directory);
    expect(living.child.exitCode).toBeNull();
    const ours = (JSON.parse(readFileSync(lockFile, 'utf8')) as { socket: string }).socket;
    const left = ['heraut.lock', 'heraut.lock.00000001', itsSocket, ours];
    expect(readdirSync(directory).toSorted()).toEqual(left.toSorted());
  });

  it('is free, also for a process on another host, after its holder has ended by itself, whatever it had in hand', async () => {
    const { child } = await lockElsewhere();
    const ended = once(child, 'exit');
    child.kill('SIGUSR2'); // it exits at once
    expect(await ended).toEqual([1, null]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is left to another process that made it after somebody had deleted that of this one', async () => {
    const unlock = await lockDirectory(directory);
    const other = JSON.stringify({ pid: 1, startedAt: '1', host: 'another-host' });
    await writeFile(lockFile, other);
    unlock();
    expect(readFileSync(lockFile, 'utf8')).toBe(other);
  });

  it.each(['without a socket', 'with the socket of a killed process'])(
    'goes to one of several processes that find it stale, %s',
    async (which) => {
      if (which === 'without a socket') await writeLock({ pid: 2 ** 22 + 1, startedAt: '1', host: hostname() });
      else await end((await lockElsewhere()).child);
      const tries = await Promise.all([lockElsewhere(), lockElsewhere(), lockElsewhere()]);
      expect(tries.filter(({ said }) => said === 'locked')).toHaveLength(1);
      expect(tries.filter(({ said }) => said.startsWith('DataDirectoryInUse'))).toHaveLength(2);
    },
  );

  it('is not even moved, once it is held, by another that has found the one before it stale', async () => {
    await end((await lockElsewhere()).child);
    const move = vi.spyOn(fs, 'renameSync');
    syncBuiltinESMExports();
    try {
      const tries = await Promise.allSettled([lockDirectory(directory), lockDirectory(directory)]);
      expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(move).toHaveBeenCalledTimes(1); // the stale one
    } finally {
      move.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('is free when the pid of its holder now belongs to another process', async () => {
    await writeLock({ pid: process.ppid, startedAt: '1', host: hostname() });
    await lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
  });

  it('is free when the pid of its holder now belongs to this process, as in a restarted container', async () => {
    await writeLock({ pid: process.pid, startedAt: '1', host: hostname() });
    await lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).not.toContain('"startedAt":"1"');
  });

  it('is free when the pid of its holder is this process’s and no start time is known', async () => {
    await writeLock({ pid: process.pid, host: hostname() });
    await expect(lockDirectory(directory)).resolves.toBeDefined();
  });

  it('stays with a holder on another host, where it is not known whether the process lives', async () => {
    await writeLock({ pid: 2 ** 22 + 1, startedAt: '1', host: 'another-host' });
    await expect(lockDirectory(directory)).rejects.toThrow(DataDirectoryInUse);
    await expect(lockDirectory(directory)).rejects.toThrow('another-host');
    expect(readFileSync(lockFile, 'utf8')).toContain('another-host');
  });

  it.each(['', 'garbage', 'null', '17', '{"pid":'])(
    'is free when it contains %j, which no Heraut wrote',
    async (text) => {
      await writeLock(text);
      await lockDirectory(directory);
      expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
    },
  );
});
