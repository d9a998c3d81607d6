import type { EntityManager } from 'typeorm';
import type { Query } from './postgres.js';
import { valuesOf } from './statement.js';

/**
 * Hand-written statements within a transaction of TypeORM. Of an UPDATE or DELETE it does not return the rows alone:
 * see its QueryRunner.
 */
export const queryOf =
  (manager: Pick<EntityManager, 'query'>): Query =>
  (statement, values = {}) =>
    manager.query(statement.text, valuesOf(statement, values));
