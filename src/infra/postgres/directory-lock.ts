import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { answerIn, isAnswered } from './holder-socket.js';
import { makeDirectory } from './make-directory.js';

/** Another process has the embedded database open, or may have; opening it twice would corrupt it. */
export class DataDirectoryInUse extends Error {
  constructor(
    /** By which process. */
    readonly found: string,
    remedy: string,
    /** Of a process on another host, which may be gone: the file to delete then. */
    readonly lock?: string,
  ) {
    super(`${found}. ${remedy}`);
  }
}

/** Locks that this process holds: what each file says, and how to end its socket. */
const held = new Map<string, { text: string; endSocket?: () => void }>();

/**
 * Locks `DATA_DIR` for this process: PGlite itself lets two processes open one directory. The lock is a file that names
 * a socket on which its holder listens beside it, so that a lock left by a killed process does not block the next
 * start. Where there is no socket, its holder's pid and start time have to do, which say nothing of the processes of
 * another container. A new container has another host name: it tells one that was killed from one on another machine by
 * the boot that both belong to, where the system names it, and by the mount through which both see the socket. A
 * process that ends by itself, in whatever way, leaves no lock. The embedded database runs in its only thread, and has
 * written its last by then.
 * @returns releases the lock
 * @throws {DataDirectoryInUse}
 */
export async function lockDirectory(directory: string): Promise<() => void> {
  makeDirectory(directory);
  const lock = join(directory, 'heraut.lock');
  // Not by the pid: that of another container may be the same.
  const id = randomUUID().slice(0, 8);
  const name = `heraut.socket.${id}`;
  // It listens before others can see the lock.
  const endSocket = await answerIn(directory, name);
  const mine = `${lock}.${id}`;
  let isLocked = false;
  try {
    const socket = endSocket && name;
    const text = JSON.stringify({
      pid: process.pid,
      startedAt: startOf(process.pid),
      host: hostname(),
      boot: thisBoot(),
      device: deviceOf(directory),
      socket,
    });
    writeFileSync(mine, text, { mode: 0o600 });
    for (;;) {
      try {
        linkSync(mine, lock); // atomic: fails when the lock exists
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      await removeIfStale(lock, directory);
    }
    process.off('exit', releaseAll).on('exit', releaseAll);
    held.set(lock, { text, endSocket });
    isLocked = true;
    await removeLeftBehind(directory, name);
    return () => release(lock);
  } finally {
    rmSync(mine, { force: true });
    if (!isLocked) endSocket?.();
  }
}

/** Somebody who took this process for gone may have deleted the file, and another process have made its own. */
function release(lock: string): void {
  const ours = held.get(lock);
  held.delete(lock);
  if (ours === undefined) return;
  if (read(lock) === ours.text) rmSync(lock, { force: true });
  ours.endSocket?.();
}

const releaseAll = (): void => [...held.keys()].forEach(release);

async function removeIfStale(lock: string, directory: string): Promise<void> {
  const text = read(lock);
  if (text === undefined) return; // its holder has just released it
  const holder = parse(text);
  const refuse = (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException;
    throw new DataDirectoryInUse(
      `${directory} may be in use by process ${holder?.pid} on host ${holder?.host}: to ask it failed with ${code}`,
      `Start as the user that it runs as. If it has ended, delete ${lock} and start again.`,
    );
  };
  const answer = holder?.socket === undefined ? undefined : await isAnswered(directory, holder.socket).catch(refuse);
  const answers = answer === true;
  const isFromElsewhere =
    holder && holder.host !== hostname() && !(answer === false && isOfThisKernel(holder, directory));
  if (holder && !answers && isFromElsewhere) {
    throw new DataDirectoryInUse(
      `${directory} is in use by process ${holder.pid} on host ${holder.host}`,
      `If that host is gone for good, delete ${lock} and start again.`,
      lock,
    );
  }
  if (holder && (answers || isAlive(holder))) {
    const where = holder.host === hostname() ? '' : ` on host ${holder.host}`;
    throw new DataDirectoryInUse(
      `${directory} is in use by process ${holder.pid}${where}`,
      'Stop it first, choose another DATA_DIR, or set DATABASE_URL to run several processes.',
    );
  }
  if (read(lock) !== text) return; // another has removed it meanwhile, and may have made its own
  // Of several processes that find the same stale lock, one renames it. It then checks that it did not move a fresh
  // lock.
  const aside = `${lock}.stale.${randomUUID().slice(0, 8)}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (read(aside) !== text) return renameSync(aside, lock);
  unlinkSync(aside);
  if (holder?.socket !== undefined) rmSync(join(directory, holder.socket), { force: true });
}

/**
 * By processes that were killed before they had the lock, or whose lock somebody has deleted. One that is just starting
 * answers: it listens before it writes its file.
 */
async function removeLeftBehind(directory: string, ours: string): Promise<void> {
  for (const file of readdirSync(directory)) {
    const path = join(directory, file);
    try {
      const socket = unlinkedName.test(file) ? parse(read(path) ?? '')?.socket : socketName.exec(file)?.[0];
      if (socket === undefined || socket === ours) continue;
      if ((await isAnswered(directory, socket)) === false) rmSync(path, { force: true });
    } catch {
      // left where it is: it is in nobody's way
    }
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

interface Holder {
  pid: number;
  startedAt: string | undefined;
  host: string;
  /** Of the kernel that it runs on. None where it cannot be read, or by a version that did not. */
  boot?: string;
  /** Of the mounted file system in which its directory is. None by a version that did not say it. */
  device?: number;
  /** The name of one in the same directory. None where none could be made, or by a version that made none. */
  socket?: string;
}

const socketName = /^heraut\.socket\.[0-9a-f]{8}$/;
/** Of a lock as it is written, before it is in its place. */
const unlinkedName = /^heraut\.lock\.[0-9a-f]{8}$/;

function parse(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    if (typeof holder?.pid === 'number' && typeof holder.host === 'string')
      return { ...(holder as Holder), socket: socketName.test(holder.socket ?? '') ? holder.socket : undefined };
  } catch {
    // falls through
  }
  return undefined; // not written by Heraut: stale
}

/**
 * Then the kernel that refused its socket would have answered for it, whatever the container. It knows a socket by its
 * file in one mounted file system: of one from a network that is mounted a second time, it finds nobody who listens. A
 * socket that is gone proves nothing: somebody may have deleted it, while its process lives.
 */
function isOfThisKernel({ boot, device, socket }: Holder, directory: string): boolean {
  const isSame = boot !== undefined && boot === thisBoot() && device === deviceOf(directory);
  return isSame && existsSync(join(directory, socket!));
}

/** Another one for each time that a file system is mounted by itself; containers that share one mount have the same. */
const deviceOf = (directory: string): number => statSync(directory).dev;

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  // After a reboot, or in a restarted container, the same pid may be another process: often this one.
  if (holder.startedAt === undefined) return holder.pid !== process.pid;
  return holder.startedAt === startOf(holder.pid);
}

/** Start time of a process in clock ticks since boot (proc(5), stat field 22); undefined where there is no /proc. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

/** Of two machines that share a file system each has its own; the containers of one have the same. */
function thisBoot(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
