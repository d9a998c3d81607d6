import { describe, expect, it } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '../config/settings.js';
import { examineDataDirectory, examineNode, examineSecrets } from './here.js';

const real = { DATABASE_URL: 'postgres://db/heraut' };
const verdicts = (environment: Record<string, string>) =>
  examineSecrets(readSettings(environment)).map(({ verdict }) => verdict);

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

  it('has secrets, or is told how to get them', () => {
    const key = `a:${'A'.repeat(43)}=`;
    expect(verdicts({})).toEqual(['ok', 'ok']); // the embedded database makes them
    expect(verdicts(real)).toEqual(['warning', 'warning']);
    expect(verdicts({ ...real, SUPERUSER_SECRET: 'short', SECRET_KEYS: key })).toEqual(['warning', 'ok']);
    expect(verdicts({ ...real, SUPERUSER_SECRET: 'x'.repeat(32), SECRET_KEYS: key })).toEqual(['ok', 'ok']);
  });

  it('has room for the embedded database, and rights to it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heraut-doctor-'));
    const look = async (environment: Record<string, string>) => examineDataDirectory(readSettings(environment));
    expect((await look({ DATA_DIR: directory })).found).toMatch(/: [\d,]+ MB free$/);
    expect((await look({ DATA_DIR: join(directory, 'not', 'there') })).verdict).toBe('failed');
    expect((await look(real)).verdict).toBe('ok');
    rmSync(directory, { recursive: true });
  });
});
