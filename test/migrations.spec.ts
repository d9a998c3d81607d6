import { describe, expect, it } from 'vitest';
import type { QueryRunner } from 'typeorm';
import { migrations } from '../migrations/index.js';

/** Before the name of a table that is locked: also one that a foreign key refers to. */
const locking = /\b(?:ALTER TABLE|ON|REFERENCES) (?:ONLY )?(\w+)/g;
const making = /\bCREATE (?:UNLOGGED )?TABLE (\w+)/g;

async function statementsOf(migration: (typeof migrations)[number]): Promise<string[]> {
  const texts: string[] = [];
  const runner = { query: (text: string) => Promise.resolve(void texts.push(text)) } as unknown as QueryRunner;
  await new migration().up(runner);
  return texts.map((text) => text.replace(/--.*$/gm, ''));
}

const namesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name!);

describe('migrations', () => {
  it('do not wait long for a table that is in use: behind a backup, everybody would wait with them', async () => {
    const known = new Set<string>();
    const waiting: string[] = [];
    for (const migration of migrations) {
      const [first, ...rest] = await statementsOf(migration);
      const text = [first, ...rest].join(';');
      const inUse = namesIn(text, locking).filter((name) => known.has(name));
      if (inUse.length > 0 && first !== `SET LOCAL lock_timeout = '2s'`) waiting.push(migration.name);
      for (const name of namesIn(text, making)) known.add(name);
    }
    expect(known).toContain('delivery');
    expect(waiting).toEqual([]);
  });
});
