import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embeddedKeyRing, readKeyFile } from './key-file.js';
import { newEntry } from './key-ring.js';

describe('the key file of the embedded database', () => {
  let directory: string;
  const file = () => join(directory, 'secret-keys');

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'heraut-keys-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('is made once, for its owner only, and found again', () => {
    const ring = embeddedKeyRing(directory, true);
    expect(ring.size).toBe(1);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect([...embeddedKeyRing(directory, true).keys()]).toEqual([...ring.keys()]);
  });

  it('is not made where something is encrypted already: it was lost', () => {
    expect(embeddedKeyRing(directory, false).size).toBe(0);
    expect(existsSync(file())).toBe(false);
  });

  it('may hold several keys, the first of which encrypts', () => {
    const before = embeddedKeyRing(directory, true);
    writeFileSync(file(), `${newEntry()}\n${readFileSync(file(), 'utf8')}`);
    const ring = embeddedKeyRing(directory, false);
    expect([...ring.keys()].slice(1)).toEqual([...before.keys()]);
  });

  it.each([
    ['empty', '\n'],
    ['torn', newEntry().slice(0, -5)],
  ])('is refused when it is %s, without what is in it', (_, text) => {
    writeFileSync(file(), text);
    expect(() => embeddedKeyRing(directory, true)).toThrow(file());
    expect(readFileSync(file(), 'utf8')).toBe(text);
  });

  it('is refused when it is not there, where it is configured', () => {
    expect(() => readKeyFile(file())).toThrow(
      `The key file ${file()} cannot be read: ENOENT: no such file or directory, open '${file()}'. It has to be there, and this user has to be allowed to read it.`,
    );
  });
});
