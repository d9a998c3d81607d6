import { closeSync, openSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

/** In bytes. The addresses of Unix sockets have room for 108 on Linux, for 104 elsewhere. */
const longestPath = 100;

/**
 * Listens in a directory, so that others can see whether this process lives: the kernel answers for it, to processes in
 * other containers as well, also while its thread is busy or it is stopped, and no longer than it lives.
 * @returns ends it; undefined where no socket can be made, as on Windows and on some file systems
 */
export function answerIn(directory: string, name: string): Promise<(() => void) | undefined> {
  const listen = (path: string) =>
    new Promise<(() => void) | undefined>((resolve) => {
      const server = createServer((caller) => caller.destroy());
      const end = () => {
        server.close();
        rmSync(join(directory, name), { force: true });
      };
      server.on('error', () => resolve(undefined));
      // A process that is supervised would have the supervisor listen in its place, and live on.
      server.listen({ path, exclusive: true }, () => resolve(end)).unref();
    });
  return withShortPath(directory, name, listen);
}

/** Of a file that nobody listens on: its process has ended, or is on another machine. */
const nobody = ['ECONNREFUSED', 'ENOENT'];

/** Of a process that may not use Unix sockets at all: by `RestrictAddressFamilies` of systemd, or a filter. */
const mayNotAsk = ['EAFNOSUPPORT', 'EPERM'];

/**
 * Whether a process of this machine listens there; undefined where this one may ask nobody.
 * @throws where it is not known for another reason: the socket may be that of another user
 */
export function isAnswered(directory: string, name: string): Promise<boolean | undefined> {
  const ask = (path: string) =>
    new Promise<boolean | undefined>((resolve, reject) => {
      const socket = connect(path, () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', (error: NodeJS.ErrnoException) => {
        if (nobody.includes(error.code!)) resolve(false);
        else if (error.code === 'EAGAIN') resolve(true); // so many are asking that there is no room for one more
        else if (mayNotAsk.includes(error.code!)) resolve(undefined);
        else reject(error);
      });
    });
  return withShortPath(directory, name, ask);
}

/** By its open directory, on Linux, where its path is too long; elsewhere that is not there, and no socket either. */
async function withShortPath<T>(directory: string, name: string, use: (path: string) => Promise<T>): Promise<T> {
  const path = join(directory, name);
  if (Buffer.byteLength(path) <= longestPath) return use(path);
  const opened = openSync(directory, 'r');
  try {
    return await use(`/proc/self/fd/${opened}/${name}`);
  } finally {
    closeSync(opened);
  }
}
