import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findMove, noteMove } from './moved-directory.js';

describe('the note that everything was moved', () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'heraut-moved-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('says where to, until it is taken back', () => {
    const takeBack = noteMove(directory, 'the Postgres at db/heraut');
    expect(findMove(directory)).toMatch(/^moved to the Postgres at db\/heraut on \d{4}-/);
    takeBack();
    expect(findMove(directory)).toBeUndefined();
  });

  it('is not there when it could not be written', () => {
    // A device that is always full, where there is one; elsewhere the link cannot be followed.
    symlinkSync('/dev/full', join(directory, 'moved-to-postgres'));
    expect(() => noteMove(directory, 'the Postgres at db/heraut')).toThrow(/^E[A-Z]+: /);
    expect(readdirSync(directory)).toEqual([]);
  });
});
