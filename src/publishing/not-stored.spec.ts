import { describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { BatcherRefusal } from '../infra/batcher.js';
import { DeadlinePassed } from '../ledger/may-write.js';
import { explainNotStored } from './not-stored.js';

const logger = new Logger('test');
logger.error = () => {};

const detailOf = (error: unknown, hasKey = false) =>
  explainNotStored(error, { which: { notificationId: 'id' }, hasKey }, logger).message;
const ofPostgres = (code: string, severity = 'ERROR') => Object.assign(new Error('no'), { code, severity });

describe('a publisher whose notification was not stored', () => {
  it.each([
    ['the disk is full', ofPostgres('53100')],
    ['the database can only be read', ofPostgres('25006')],
    ['several waited for each other', ofPostgres('40P01')],
    ['the database has no transaction ids left, and refuses to write', ofPostgres('54000')],
    ['it took too long', ofPostgres('57014')],
    ['a lock did not come', ofPostgres('55P03')],
    ['Postgres is starting', ofPostgres('57P03', 'FATAL')],
    ['no connection came about', Object.assign(new Error(), { code: 'ECONNREFUSED', syscall: 'connect' })],
    ['too much was waiting', new BatcherRefusal('full')],
    ['its turn came too late', new DeadlinePassed()],
  ])('is told that it was not, where %s', (_, error) => {
    expect(detailOf(error)).toContain('was not stored');
    const ofRepetition = detailOf(error, true);
    expect(ofRepetition, 'an earlier one with its key may have been').toContain('may not have been stored');
  });

  it.each([
    ['an administrator ended the connection', ofPostgres('57P01', 'FATAL')],
    ['another process of Postgres crashed', ofPostgres('57P02', 'FATAL')],
    ['the disk of Postgres’ log is full, and it crashed', ofPostgres('53100', 'PANIC')],
    ['the connection broke', new Error('Connection terminated unexpectedly')],
    ['no answer came', new BatcherRefusal('unanswered')],
  ])('is told that it may have been, where %s', (_, error) => {
    expect(detailOf(error)).toContain('may not have been stored');
  });
});
