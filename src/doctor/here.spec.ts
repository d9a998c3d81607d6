import { describe, expect, it } from 'vitest';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '../config/settings.js';
import { noteMove } from '../infra/postgres/moved-directory.js';
import { examineDataDirectory, examineNode, examineSuperuser } from './here.js';

const real = { DATABASE_URL: 'postgres://db/heraut' };
const verdict = (environment: Record<string, string>) => examineSuperuser(readSettings(environment)).verdict;

describe('the machine itself', () => {
  it.each([
    ['18.20.0', 'failed'],
    ['20.18.3', 'failed'],
    ['20.19.0', 'warning'],
    ['21.7.0', 'warning'],
    ['22.0.0', 'ok'],
    ['24.11.0', 'ok'],
  ])('has Node %s: %s', (version, verdict) => {
    expect(examineNode(version).verdict).toBe(verdict);
  });

  it('has the secret of a superuser, or is told how to get it', () => {
    // The embedded database makes one.
    expect(verdict({ DATA_DIR: join(tmpdir(), 'heraut-is-not-there') })).toBe('ok');
    expect(verdict(real)).toBe('warning');
    expect(verdict({ ...real, SUPERUSER_SECRET: 'short' })).toBe('warning');
    expect(verdict({ ...real, SUPERUSER_SECRET: 'x'.repeat(32) })).toBe('ok');
  });

  it('has room for the embedded database, and rights to it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heraut-doctor-'));
    const look = async (environment: Record<string, string>) => examineDataDirectory(readSettings(environment));
    expect((await look({ DATA_DIR: directory })).found).toMatch(/: [\d,]+ MB free$/);
    const file = join(directory, 'file');
    writeFileSync(file, '', { mode: 0o700 });
    for (const inTheWay of [file, join(file, 'data'), join(file, 'data', 'deep')])
      expect((await look({ DATA_DIR: inTheWay })).verdict).toBe('failed');
    // A start makes it, with all that is missing above it.
    const there = await look({ DATA_DIR: directory });
    expect((await look({ DATA_DIR: join(directory, 'not', 'yet', 'there') })).verdict).toBe(there.verdict);
    expect((await look(real)).verdict).toBe('ok');
    for (const name of ['pglite', 'secret-keys']) {
      // Likewise those of another user. Not even root may use these.
      symlinkSync(name, join(directory, name));
      expect(await look({ DATA_DIR: directory })).toMatchObject({
        verdict: 'failed',
        found: expect.stringContaining('ELOOP'),
        advice: expect.stringContaining('all that is in it'),
      });
      rmSync(join(directory, name));
    }
    noteMove(directory, 'the Postgres at db/heraut');
    expect(await look({ DATA_DIR: directory })).toMatchObject({
      verdict: 'failed',
      found: expect.stringContaining('everything in it was moved to the Postgres at db/heraut on '),
      advice: expect.stringContaining('Set DATABASE_URL to that Postgres'),
    });
    rmSync(directory, { recursive: true });
  });
});
