import { describe, expect, it } from 'vitest';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CannotConnect } from '../cannot-connect.js';
import { lockDirectory } from './directory-lock.js';
import { explainDirectory } from './directory-trouble.js';

const errorOf = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('a data directory that is of no use', () => {
  /** As the embedded database throws it. */
  const ofEmbedded = (errno: number) => ({ name: 'ErrnoError', errno });
  const ofSystem = (code: string, message: string) => Object.assign(new Error(`${code}: ${message}`), { code });

  it.each([
    ['its disk is full', ofEmbedded(51), 'ENOSPC. Its disk is full: make room there, and start again.'],
    ['it cannot be made', ofSystem('ENOENT', 'no such file, mkdir'), /^ENOENT: no such file, mkdir\. It is not there/],
    ['it is read-only', ofEmbedded(69), /^EROFS\. That file system is read-only: .* DATA_DIR/],
    [
      'a file cannot be written',
      ofSystem('ENOSPC', 'no space left, write'),
      /^ENOSPC: no space left, write\. Its disk/,
    ],
    [
      'a table cannot grow',
      Object.assign(new Error('could not extend file'), { driverError: { code: '53100' } }),
      /^could not extend file\. Its disk/,
    ],
    [
      'its files are of another user',
      new Error('PGlite failed to initialize properly'),
      /^PGlite failed to initialize properly\. Its files are of another user, or damaged: .* DATA_DIR/,
    ],
  ])('is named in one sentence, with the remedy, where %s', (_, error, expected) => {
    const explained = explainDirectory('/srv/heraut', error);
    expect(explained).toBeInstanceOf(CannotConnect);
    const [start, rest] = (explained as Error).message.split(' cannot be used: ');
    expect(start).toBe('The embedded database in DATA_DIR (/srv/heraut)');
    expect(rest).toMatch(expected);
  });

  it('is named where a file is in its place, or on the way there', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heraut-trouble-'));
    const file = join(directory, 'file');
    writeFileSync(file, '');
    for (const dataDir of [file, join(file, 'data'), join(file, 'data', 'deep')]) {
      const explained = explainDirectory(dataDir, await errorOf(() => lockDirectory(dataDir)));
      expect(String(explained)).toContain('A file is in its place, or on the way there: set DATA_DIR to a directory.');
    }
    rmSync(directory, { recursive: true });
  });

  it('is not blamed for anything else', async () => {
    const others = [
      await errorOf(() => readFileSync('/etc/passwd/other')),
      ofEmbedded(28),
      new Error('a bug'),
      undefined,
    ];
    for (const error of others) expect(explainDirectory('/srv/heraut', error)).toBe(error);
  });
});
