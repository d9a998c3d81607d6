import { describe, expect, it } from 'vitest';
import { judgeLockTable, type LockTable } from './lock-table.pg.js';

/** Of Postgres as it is delivered. */
const table: LockTable = { perTransaction: 64, transactions: 100, days: 9, indexes: 16, dispatchers: 2 };

describe('the room in the lock table of Postgres', () => {
  it('is enough for thirty days and sixteen dispatchers', () => {
    expect(judgeLockTable({ ...table, dispatchers: 16 }, 30)).toMatchObject({ verdict: 'ok' });
  });

  it('is just enough for a year and two dispatchers', () => {
    expect(judgeLockTable(table, 365)).toMatchObject({ verdict: 'ok' });
    expect(judgeLockTable(table, 370)).toMatchObject({ verdict: 'warning' });
  });

  it.each([
    ['a year and eight dispatchers', { dispatchers: 8 }, 365, 'Set max_locks_per_transaction to 256 '],
    ['three years', {}, 1095, 'Set max_locks_per_transaction to 192 '],
    ['what is there already', { days: 1200 }, 30, 'Set max_locks_per_transaction to 256 '],
  ])('is not enough for %s', (_, difference, retentionDays, advice) => {
    expect(judgeLockTable({ ...table, ...difference }, retentionDays)).toMatchObject({
      verdict: 'warning',
      advice: expect.stringContaining(advice),
    });
  });
});
