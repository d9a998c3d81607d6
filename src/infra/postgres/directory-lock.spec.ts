import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
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
      try { lockDirectory(${JSON.stringify(directory)}); console.log('locked'); setInterval(() => {}, 60_000); }
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

  const writeLock = async (holder: unknown) => {
    lockDirectory(directory)();
    await writeFile(lockFile, typeof holder === 'string' ? holder : JSON.stringify(holder));
  };

  it('makes the directory for its owner alone, and leaves nothing but itself', async () => {
    lockDirectory(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect(readdirSync(directory)).toEqual(['heraut.lock']);
  });

  it('makes the directories above it that are missing, for their owner alone as well', async () => {
    directory = join(parent, 'not', 'yet', 'there');
    lockDirectory(directory);
    for (const made of [directory, join(parent, 'not', 'yet'), join(parent, 'not')])
      expect((await stat(made)).mode & 0o777).toBe(0o700);
  });

  it('fails at once where no directory can be made, whatever the file system says of it', async () => {
    directory = '/proc/heraut/data'; // which is not there to whoever makes it, and its parent is
    expect((await lockElsewhere()).said).toMatch(/^Error E[A-Z]+: .*mkdir '\/proc/);
  });

  it('can be acquired again once it was released', () => {
    const unlock = lockDirectory(directory);
    unlock();
    expect(readdirSync(directory)).toEqual([]);
    lockDirectory(directory);
    expect(existsSync(lockFile)).toBe(true);
  });

  it('is refused to a second process while the first lives, with the pid of the first', async () => {
    const { child, said } = await lockElsewhere();
    expect(said).toBe('locked');
    expect(() => lockDirectory(directory)).toThrow(DataDirectoryInUse);
    expect(() => lockDirectory(directory)).toThrow(`process ${child.pid}`);
    expect(readdirSync(directory)).toEqual(['heraut.lock']);
  });

  it('is refused to another process while this one has it', async () => {
    lockDirectory(directory);
    const { said } = await lockElsewhere();
    expect(said).toContain(`DataDirectoryInUse ${directory} is in use by process ${process.pid}`);
  });

  it('is refused to the process that has it already', () => {
    lockDirectory(directory);
    expect(() => lockDirectory(directory)).toThrow(DataDirectoryInUse);
  });

  it('is free after its holder was killed', async () => {
    const { child } = await lockElsewhere();
    await end(child);
    expect(existsSync(lockFile)).toBe(true);
    lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
    expect(readdirSync(directory)).toEqual(['heraut.lock']);
  });

  it('is free, also for a process on another host, after its holder has ended by itself, whatever it had in hand', async () => {
    const { child } = await lockElsewhere();
    const ended = once(child, 'exit');
    child.kill('SIGUSR2'); // it exits at once
    expect(await ended).toEqual([1, null]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is left to another process that made it after somebody had deleted that of this one', async () => {
    const unlock = lockDirectory(directory);
    const other = JSON.stringify({ pid: 1, startedAt: '1', host: 'another-host' });
    await writeFile(lockFile, other);
    unlock();
    expect(readFileSync(lockFile, 'utf8')).toBe(other);
  });

  it('goes to one of several processes that find it stale', async () => {
    await writeLock({ pid: 2 ** 22 + 1, startedAt: '1', host: hostname() });
    const tries = await Promise.all([lockElsewhere(), lockElsewhere(), lockElsewhere()]);
    expect(tries.filter(({ said }) => said === 'locked')).toHaveLength(1);
    expect(tries.filter(({ said }) => said.startsWith('DataDirectoryInUse'))).toHaveLength(2);
  });

  it('is free when the pid of its holder now belongs to another process', async () => {
    await writeLock({ pid: process.ppid, startedAt: '1', host: hostname() });
    lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
  });

  it('is free when the pid of its holder now belongs to this process, as in a restarted container', async () => {
    await writeLock({ pid: process.pid, startedAt: '1', host: hostname() });
    lockDirectory(directory);
    expect(readFileSync(lockFile, 'utf8')).not.toContain('"startedAt":"1"');
  });

  it('is free when the pid of its holder is this process’s and no start time is known', async () => {
    await writeLock({ pid: process.pid, host: hostname() });
    expect(() => lockDirectory(directory)).not.toThrow();
  });

  it('stays with a holder on another host, where it is not known whether the process lives', async () => {
    await writeLock({ pid: 2 ** 22 + 1, startedAt: '1', host: 'another-host' });
    expect(() => lockDirectory(directory)).toThrow(DataDirectoryInUse);
    expect(() => lockDirectory(directory)).toThrow('another-host');
    expect(readFileSync(lockFile, 'utf8')).toContain('another-host');
  });

  it.each(['', 'garbage', 'null', '17', '{"pid":'])(
    'is free when it contains %j, which no Heraut wrote',
    async (text) => {
      await writeLock(text);
      lockDirectory(directory);
      expect(readFileSync(lockFile, 'utf8')).toContain(`"pid":${process.pid}`);
    },
  );
});
