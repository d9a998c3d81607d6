import { Injectable } from '@nestjs/common';
import { counted } from '../infra/counted.js';
import { v7 as uuidv7 } from 'uuid';
import { AuditLog } from '../audit/audit-log.js';
import { ConflictProblem, NotFoundProblem } from '../infra/http/problem.js';
import { readBack } from '../infra/http/read-back.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { dayOfId, lowestId } from '../ledger/partitions.js';
import { onDay, perDay } from '../ledger/per-day.js';
import { hashOf, type Erasure, type ErasureState } from './erasure.js';
import { addErasure, confirmErasure, findErasure, listErasures, lockErasure } from './erasure-rows.js';

export const findNotification = perDay('find-notification', (of) => `SELECT FROM ${of('notification')} WHERE id = $id`);

/** Erasures that operators ask for. The dispatcher does them: see `ErasureWork`. */
@Injectable()
export class Erasures {
  constructor(private readonly postgres: Postgres) {}

  /** @throws {NotFoundProblem} */
  async ofNotification(notificationId: string): Promise<Erasure> {
    const found = this.postgres.query(findNotification(dayOfId(notificationId)), { id: notificationId });
    if ((await onDay(found, [])).length === 0) throw new NotFoundProblem('There is no such notification.');
    return this.add({ notification: notificationId, mainObject: null, state: 'erasing' });
  }

  /** Counts first: nothing is erased before it is confirmed. */
  async aboutMainObject(mainObject: string): Promise<Erasure> {
    return this.add({ notification: null, mainObject, state: 'counting' });
  }

  /**
   * @param count as it was found
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem}
   */
  async confirm(id: string, count: number): Promise<Erasure> {
    await this.postgres.transaction(async (query) => {
      const [erasure] = await query<{ state: ErasureState; found: number }>(lockErasure, { id });
      if (!erasure) throw noSuchErasure();
      if (erasure.state !== 'counted')
        throw new ConflictProblem(
          'erasure-not-counted',
          `The erasure is ${erasure.state}, there is nothing to confirm.`,
        );
      if (erasure.found !== count)
        throw new ConflictProblem(
          'confirm-mismatch',
          `The erasure found ${counted(erasure.found, 'notification')}, not ${count}.`,
        );
      await query(confirmErasure, { id, reached: lowestId });
      await AuditLog.note(query, {
        action: 'erasure.confirmed',
        subject: `erasure/${id}`,
        before: { state: 'counted' },
        after: { state: 'erasing', found: count },
      });
    });
    return readBack(() => this.get(id));
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<Erasure> {
    const [erasure] = await this.postgres.query<Erasure>(findErasure, { id });
    if (!erasure) throw noSuchErasure();
    return erasure;
  }

  /** Newest first. @param before only those that were asked for before this one */
  list(limit: number, before: string | undefined): Promise<Erasure[]> {
    return this.postgres.query<Erasure>(listErasures, { limit, before: before ?? null });
  }

  private async add(of: { notification: string | null; mainObject: string | null; state: ErasureState }) {
    const id = uuidv7();
    const { notification, mainObject, state } = of;
    // The audit log is kept for years: it says what was erased without containing it.
    const mainObjectHash = mainObject === null ? null : hashOf(mainObject);
    await this.postgres.transaction(async (query) => {
      await query(addErasure, {
        id,
        notification,
        main_object: mainObject,
        main_object_hash: mainObjectHash,
        state,
        reached: lowestId,
      });
      await AuditLog.note(query, {
        action: 'erasure.requested',
        subject: `erasure/${id}`,
        before: null,
        after: { notification, mainObjectHash },
      });
    });
    return readBack(() => this.get(id));
  }
}

const noSuchErasure = () => new NotFoundProblem('There is no such erasure.');
