import { Injectable } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { AuditLog } from '../audit/audit-log.js';
import { currentAuthor } from '../audit/author.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { meansEverything, type Selection } from '../deliveries/selection.js';
import { reserveNothing, type Reserve } from '../request-keys/creation-requests.service.js';
import { ConflictProblem, NotFoundProblem, ValidationProblem } from '../infra/http/problem.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { Statement, Values } from '../infra/postgres/statement.js';
import { highestId, idAfter, idBefore, lowestId, lowestIdAt, timeOfId } from '../ledger/partitions.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { MeantCounter, type Range } from './count-meant.service.js';
import { meantBy, openReplayStates, type Replay, type ReplayKind, type ReplayState } from './replay.js';
import {
  endReplay,
  findReplay,
  insertReplay,
  listReplays,
  lockReplay,
  pauseReplay,
  replayOf,
  resumeReplay,
  type ReplayRow,
} from './replay-rows.js';
import type { DryRun } from './replays-io.js';
import { counted } from '../infra/counted.js';

/** More deliveries than these are worked on only after somebody has confirmed how many they are. */
const many = 10_000;
/** By how much of it a count may differ from the one that was confirmed: deliveries go on dying meanwhile. */
const tolerance = 0.01;

export interface Wanted {
  kind: ReplayKind;
  selection: Selection;
  onlyMissed: boolean;
  /** Null: as fast as the ledger takes it. */
  ratePerSecond: number | null;
  startAt: Date | undefined;
  stopAt: Date | undefined;
  confirm: number | undefined;
  note: string | undefined;
}

const open: ReadonlySet<ReplayState> = new Set(openReplayStates);

/** The operations of operators on replays. A dispatcher carries them out: `ReplayRunner`. */
@Injectable()
export class Replays {
  constructor(
    private readonly postgres: Postgres,
    private readonly counter: MeantCounter,
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
  ) {}

  /** @throws {ValidationProblem} */
  async dryRun(kind: ReplayKind, selection: Selection, onlyMissed: boolean): Promise<DryRun> {
    const subscription = await this.subscriptionOf(selection);
    const asOf = await this.counter.now();
    const counted = await this.counter.count(
      meantBy(kind, selection, onlyMissed),
      rangeOf(selection, asOf),
      subscription,
    );
    const needsConfirm = meansEverything(selection) || counted.count > many || counted.searchedTo !== undefined;
    return { ...counted, needsConfirm, asOf };
  }

  /**
   * @throws {ValidationProblem}
   * @throws {ConflictProblem}
   */
  async create(wanted: Wanted, reserve: Reserve = reserveNothing): Promise<Replay> {
    const { kind, selection, onlyMissed, ratePerSecond, startAt = null, stopAt = null, confirm, note = null } = wanted;
    const { count, searchedTo, needsConfirm, asOf } = await this.dryRun(kind, selection, onlyMissed);
    if (stopAt && stopAt.getTime() <= asOf)
      throw new ValidationProblem([{ name: 'stopAt', code: 'invalid', reason: 'Has passed.' }]);
    const isWhole = searchedTo === undefined;
    if (confirm === undefined ? needsConfirm : !isConfirmed(kind, confirm, count, isWhole)) {
      const which = isWhole ? 'means' : 'means at least';
      throw new ConflictProblem(
        'selection-not-confirmed',
        `The selection ${which} ${counted(count, 'delivery', 'deliveries')}. If that is what you want, repeat the request with "confirm": ${count}.`,
      );
    }
    const { after, before } = rangeOf(selection, asOf);
    const values = {
      id: uuidv7({ msecs: asOf }),
      kind,
      selection: JSON.stringify(selection),
      states: meantBy(kind, selection, onlyMissed).states,
      only_missed: onlyMissed,
      rate: ratePerSecond,
      start_at: startAt,
      stop_at: stopAt,
      note,
      counted: count,
      is_count_whole: isWhole,
      after_notification: after.notificationId,
      after_subscription: after.subscriptionId,
      before,
      created_by: currentAuthor()?.client ?? null,
    };
    try {
      return await this.postgres.transaction(async (query) => {
        // First: of two requests under one key, the other one is not refused because this replay is under way.
        await reserve(query, values.id);
        const [row] = await query<ReplayRow>(insertReplay, values);
        const replay = replayOf(row!);
        const { states, counted } = replay;
        const fields = { kind, selection, states, onlyMissed, ratePerSecond, startAt, stopAt, note, count: counted };
        await AuditLog.note(query, {
          action: 'replay.created',
          subject: subjectOf(replay),
          before: null,
          after: fields,
        });
        return replay;
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new ConflictProblem(
        'replay-under-way',
        'There is a replay of everything for this subscription that has not ended.',
      );
    }
  }

  async list(filter: { kind?: ReplayKind; state?: ReplayState; before?: string }, limit: number): Promise<Replay[]> {
    const values = { kind: filter.kind ?? null, state: filter.state ?? null, before: filter.before ?? null, limit };
    return (await this.postgres.query<ReplayRow>(listReplays, values)).map(replayOf);
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<Replay> {
    const [row] = await this.postgres.query<ReplayRow>(findReplay, { id });
    if (!row) throw notFound();
    return replayOf(row);
  }

  /** Deliveries that it has sent go on. @throws {NotFoundProblem | ConflictProblem} */
  pause(id: string): Promise<Replay> {
    return this.change(id, 'paused', (state) => state !== 'paused', pauseReplay);
  }

  /** @throws {NotFoundProblem | ConflictProblem} */
  resume(id: string): Promise<Replay> {
    return this.change(id, 'resumed', (state) => state === 'paused', resumeReplay);
  }

  /** Deliveries that it has sent go on. @throws {NotFoundProblem | ConflictProblem} */
  cancel(id: string): Promise<Replay> {
    return this.change(id, 'cancelled', () => true, endReplay, { state: 'cancelled', because: null });
  }

  /** A step that is being made ends first. */
  private change(
    id: string,
    done: string,
    applies: (state: ReplayState) => boolean,
    statement: Statement,
    values: Values = {},
  ): Promise<Replay> {
    return this.postgres.transaction(async (query) => {
      const [found] = await query<ReplayRow>(lockReplay, { id });
      if (!found) throw notFound();
      if (!open.has(found.state)) throw new ConflictProblem('replay-ended', `It has ended: it is ${found.state}.`);
      if (!applies(found.state)) return replayOf(found);
      const [row] = await query<ReplayRow>(statement, { id, ...values });
      const replay = replayOf(row!);
      const [before, after] = [{ state: found.state }, { state: replay.state }];
      await AuditLog.note(query, { action: `replay.${done}`, subject: subjectOf(replay), before, after });
      return replay;
    });
  }

  private async subscriptionOf({ everythingFor }: Selection): Promise<Subscription | undefined> {
    await this.catalogue.refresh();
    if (everythingFor === undefined) return undefined;
    const subscription = this.subscriptions.find(everythingFor);
    if (subscription && !subscription.disabledAt) return subscription;
    const reason = subscription ? 'The subscription is disabled.' : 'There is no such subscription.';
    throw new ValidationProblem([{ name: 'selection.everythingFor', code: 'invalid', reason }]);
  }
}

/**
 * A count that is not whole depends on how much was looked at in its time: the one that was confirmed may have been
 * more, or less. There are fewer to cancel with each second that somebody takes to confirm them: they are delivered.
 */
const isConfirmed = (kind: ReplayKind, confirm: number, count: number, isWhole: boolean): boolean => {
  if (!isWhole) return confirm >= count / 2;
  return (kind === 'cancel' && count < confirm) || Math.abs(count - confirm) <= count * tolerance;
};

const subjectOf = ({ id }: Replay): string => `replay/${id}`;

const notFound = () => new NotFoundProblem('There is no such replay, or it ended long ago.');

/** Later than every id. */
const latestMs = Date.UTC(10_000, 0, 1);

/**
 * Notifications that are accepted from now on are not meant. One that is named was accepted, whatever its id says of
 * the time.
 */
function rangeOf({ notification, acceptedFrom, acceptedTo, deliveries }: Selection, nowMs: number): Range {
  // No other days are looked into than those of the ones that are named.
  const times = deliveries?.map(({ notificationId }) => timeOfId(notificationId));
  const from = Math.max(acceptedFrom === undefined ? 0 : Date.parse(acceptedFrom), times ? Math.min(...times) : 0);
  const to = Math.min(
    acceptedTo === undefined ? latestMs : Date.parse(acceptedTo),
    times ? Math.max(...times) + 1 : latestMs,
  );
  if (notification === undefined)
    return {
      after: { notificationId: lowestIdAt(from), subscriptionId: lowestId },
      before: lowestIdAt(Math.min(to, nowMs + 1)),
    };
  const [first, end] = [lowestIdAt(from), lowestIdAt(to)];
  // The lowest id of a time is none of a notification.
  const isWithin = notification > first && notification < end;
  return {
    after: { notificationId: isWithin ? idBefore(notification) : end, subscriptionId: highestId },
    before: isWithin ? idAfter(notification) : end,
  };
}
