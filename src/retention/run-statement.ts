import type { QueryRunner } from 'typeorm';
import type { Query } from '../infra/postgres/postgres.js';
import { valuesOf } from '../infra/postgres/statement.js';

/** Runs statements on the connection that drops partitions: embedded it is the only one, and in use meanwhile. */
export const on =
  (runner: QueryRunner): Query =>
  (statement, values = {}) =>
    runner.query(statement.text, valuesOf(statement, values));
