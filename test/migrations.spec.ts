import { describe, expect, it } from 'vitest';
import type { QueryRunner } from 'typeorm';
import { migrations } from '../migrations/index.js';

/** They make tables, and lock none that is in use: they came before the rule, and are not edited any more. */
const withoutTimeout = [
  'CreateCatalogue1763625600000',
  'CreateLedger1763625600001',
  'CreateMoment1763625600002',
  'CreateAuditLog1763625600005',
  'CreateLiveEvents1763625600011',
];

async function statementsOf(migration: (typeof migrations)[number]): Promise<string[]> {
  const texts: string[] = [];
  const runner = { query: (text: string) => Promise.resolve(void texts.push(text)) } as unknown as QueryRunner;
  await new migration().up(runner);
  return texts;
}

describe('migrations', () => {
  it('do not wait long for a table that is in use: behind a backup, everybody would wait with them', async () => {
    const waiting: string[] = [];
    for (const migration of migrations) {
      const [first] = await statementsOf(migration);
      if (first !== `SET LOCAL lock_timeout = '2s'`) waiting.push(migration.name);
    }
    expect(waiting).toEqual(withoutTimeout);
  });
});
