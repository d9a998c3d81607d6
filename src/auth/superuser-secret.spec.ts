import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSettings } from '../config/settings.js';
import { superuserSecret } from './superuser-secret.js';

describe('the secret of the superuser, of the embedded database', () => {
  let directory: string;
  beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'heraut-superuser-'))));
  afterEach(() => rmSync(directory, { recursive: true }));

  const file = () => join(directory, 'superuser-secret');
  const start = (environment = {}) => superuserSecret(readSettings({ DATA_DIR: directory, ...environment }));

  it('is made at the first start, for this user alone, and is the same from then on', () => {
    const secret = start();
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(start()).toBe(secret);
    expect([statSync(file()).mode & 0o777, readdirSync(directory)]).toEqual([0o600, ['superuser-secret']]);
  });

  it.each(['', '\n'])('is made by the next start where one was interrupted and left an empty file: %j', (left) => {
    writeFileSync(file(), left);
    const secret = start();
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(start()).toBe(secret);
  });

  it('is not there under its name before it is written as a whole', () => {
    const draft = `${file()}.${process.pid}`;
    mkdirSync(draft); // it cannot be written
    expect(start).toThrow('EISDIR');
    expect(readdirSync(directory)).not.toContain('superuser-secret');
    rmSync(draft, { recursive: true });
    expect(start()).toMatch(/^[\w-]{43}$/);
  });

  it('is the one that is configured, and none is made', () => {
    expect(start({ SUPERUSER_SECRET: 'x'.repeat(32) })).toBe('x'.repeat(32));
    expect(start({ DATABASE_URL: 'postgres://localhost/x' })).toBeUndefined();
    expect(readdirSync(directory)).toEqual([]);
  });
});
