import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepPrivate } from './keep-private.js';

describe('the directory of the embedded database', () => {
  const warned: unknown[] = [];
  let directory: string;
  const modeOf = (path: string) => statSync(path).mode & 0o777;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'heraut-private-'));
    warned.length = 0;
    const ignore = () => {};
    Logger.overrideLogger({ log: ignore, error: ignore, warn: (event: unknown) => warned.push(event) });
  });
  afterEach(() => {
    Logger.overrideLogger(false);
    rmSync(directory, { recursive: true });
  });

  it('is made for its owner alone', () => {
    const made = join(directory, 'pglite');
    keepPrivate(made);
    expect(modeOf(made)).toBe(0o700);
  });

  it('is closed to others where it was open, with what is in it', () => {
    chmodSync(directory, 0o755);
    writeFileSync(join(directory, 'PG_VERSION'), '18\n');
    keepPrivate(directory);
    expect(modeOf(directory)).toBe(0o700);
    expect(warned).toEqual([]);
  });

  it('is used all the same, with a warning, where its mode cannot be changed', () => {
    keepPrivate('/proc/self/task'); // of which not even root may change the mode
    expect(warned).toEqual([expect.objectContaining({ event: 'postgres.directory-not-private' })]);
  });

  it('is used in the same way on a file system that ignores modes without a word', () => {
    chmodSync(directory, 0o755);
    keepPrivate(directory, () => {});
    expect(warned).toEqual([expect.objectContaining({ event: 'postgres.directory-not-private', directory })]);
  });

  it('is no file', () => {
    const file = join(directory, 'file');
    writeFileSync(file, '');
    expect(() => keepPrivate(join(file, 'pglite'))).toThrow('ENOTDIR');
  });
});
