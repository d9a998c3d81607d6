import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newEntry } from '../secrets/key-ring.js';
import { examine } from './examine.js';

describe('the secrets of the embedded database', () => {
  let directory: string;
  const at = (name: string) => join(directory, name);
  const look = async (environment: Record<string, string> = {}) => {
    const found = await examine({ DATA_DIR: directory, ...environment });
    const named = (name: string) => found.filter((finding) => finding.name === name);
    return { keys: named('secret-keys'), superuser: named('superuser') };
  };
  const makeDatabase = () => {
    mkdirSync(at('pglite'));
    writeFileSync(at('pglite/PG_VERSION'), '17\n');
  };

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'heraut-doctor-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('are made by the first start', async () => {
    expect(await look()).toMatchObject({
      keys: [{ verdict: 'ok', found: expect.stringContaining('made at the first start') }],
      superuser: [{ verdict: 'ok', found: expect.stringContaining('made at the first start') }],
    });
  });

  it('are where the doctor says', async () => {
    makeDatabase();
    const entry = newEntry();
    for (const name of ['secret-keys', 'other-keys', 'superuser-secret']) writeFileSync(at(name), `${entry}\n`);
    const { keys, superuser } = await look();
    expect([keys, superuser]).toMatchObject([
      [{ verdict: 'ok', found: expect.stringContaining(at('secret-keys')) }],
      [{ verdict: 'ok', found: expect.stringContaining(at('superuser-secret')) }],
    ]);
    const set = await look({ SECRET_KEYS: entry });
    expect(set.keys).toMatchObject([{ verdict: 'ok', found: expect.stringMatching(/in SECRET_KEYS$/) }]);
    const file = await look({ SECRET_KEYS_FILE: at('other-keys') });
    expect(file.keys).toMatchObject([{ verdict: 'ok', found: expect.stringContaining(at('other-keys')) }]);
    expect(JSON.stringify([keys, superuser, set, file])).not.toContain(entry.split(':')[1]);
  });

  it('cannot be read without the key that was beside them', async () => {
    makeDatabase();
    expect((await look()).keys).toMatchObject([
      {
        verdict: 'failed',
        found: expect.stringContaining(`${at('secret-keys')} is not there`),
        advice: expect.stringContaining('Put the key back'),
      },
    ]);
  });

  it.each([
    ['not a key', 'entry 1 is not'],
    ['', 'holds no keys'],
  ])('cannot be read with a key file that holds %j', async (text, reason) => {
    makeDatabase();
    writeFileSync(at('secret-keys'), text);
    expect((await look()).keys).toMatchObject([
      {
        verdict: 'failed',
        found: expect.stringContaining(reason),
        advice: expect.stringContaining('Put the key back'),
      },
    ]);
  });

  it('cannot be read where a file of theirs cannot', async () => {
    // Not even root reads these.
    for (const name of ['secret-keys', 'superuser-secret']) mkdirSync(at(name));
    const { keys, superuser } = await look();
    expect([keys, superuser]).toMatchObject([
      [{ verdict: 'failed', found: expect.stringContaining('EISDIR') }],
      [{ verdict: 'failed', found: expect.stringContaining('EISDIR'), advice: expect.stringContaining('chown') }],
    ]);
    expect((await look({ SECRET_KEYS_FILE: at('none') })).keys).toMatchObject([{ verdict: 'failed' }]);
    expect((await look({ SUPERUSER_SECRET: 'x'.repeat(32) })).superuser).toMatchObject([{ verdict: 'ok' }]);
  });

  it('have no superuser where the file of its secret is empty', async () => {
    writeFileSync(at('superuser-secret'), '\n');
    expect((await look()).superuser).toMatchObject([
      {
        verdict: 'failed',
        found: expect.stringContaining('is empty'),
        advice: expect.stringContaining('Start Heraut again'),
      },
    ]);
  });

  it('are not looked at where the directory itself is told of', async () => {
    symlinkSync('pglite', at('pglite'));
    expect((await look()).keys).toMatchObject([{ verdict: 'skipped' }]);
  });
});
