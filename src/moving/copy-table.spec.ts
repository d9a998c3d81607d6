import { describe, expect, it } from 'vitest';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { copyTable } from './copy-table.js';
import { howManyFit } from './read-pages.js';
import type { Database } from './tables.js';

const cipher = new SecretCipher(new Map());
const ciphers = { from: [cipher, cipher], to: cipher } as const;
const table = { name: 'things', columns: [{ name: 'id', type: 'uuid' }], key: ['id'], references: [] };

describe('a page', () => {
  it('has as many rows as fit, and one at least', () => {
    expect(howManyFit([1, 2, 3], 6)).toBe(3);
    expect(howManyFit([1, 2, 4, 1], 6)).toBe(2);
    expect(howManyFit([7, 1], 6)).toBe(1);
    expect(howManyFit([], 6)).toBe(0);
  });
});

describe('a table that is copied', () => {
  it('is refused where its index has lost rows that it has', async () => {
    const answers = [[], [{ count: 3 }]];
    const source = { query: () => Promise.resolve(answers.shift()) } as unknown as Database;
    await expect(copyTable(source, source, table, ciphers, () => {})).rejects.toThrow(
      'The embedded database is damaged: table things has 3 rows, and its index leads to 0. Nothing was moved.',
    );
  });

  it('is refused without a primary key, by which its pages are read', async () => {
    const source = { query: () => Promise.resolve([]) } as unknown as Database;
    await expect(copyTable(source, source, { ...table, key: [] }, ciphers, () => {})).rejects.toThrow('primary key');
  });
});
