import * as z from 'zod';
import { selectionInput, selectionOutput, type Selection } from '../deliveries/selection.js';
import { storable, timeInput } from '../infra/http/input-parts.js';
import { nextCursor, pageQuery } from '../infra/http/page-query.js';
import { ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import { isUuid } from '../infra/uuid-text.js';
import { timeOfId } from '../ledger/partitions.js';
import { stateOf, subscriptionStates } from '../subscriptions/subscription-state.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { Counted } from './count-meant.service.js';
import { replayKinds, replayStates, statesOf, stopReasons, type Replay, type ReplayKind } from './replay.js';

const time = () => z.iso.datetime();
const inputTime = () => timeInput().transform((value) => new Date(value));
const note = z.string().min(1).max(1000).check(storable);

const confirm = z
  .int()
  .min(0)
  .optional()
  .describe(
    'The `count` of a dry run, to a hundredth; at least half of it where not everything could be counted. To cancel, any higher number will do: what is unfinished is delivered meanwhile. Needed where `needsConfirm` of the dry run is true, and checked wherever it is given.',
  );
const onlyMissed = z.boolean().default(true).describe('Notifications that have been delivered are not sent again.');

export const dryRunInput = z
  .strictObject({ kind: z.enum(replayKinds).default('replay'), selection: selectionInput, onlyMissed })
  .meta({ id: 'ReplayDryRunInput' });

export const replayInput = z
  .strictObject({
    selection: selectionInput,
    onlyMissed,
    ratePerSecond: z
      .number()
      .min(0.1)
      .max(10_000)
      .default(100)
      .describe('Deliveries a second, over all subscriptions.'),
    startAt: inputTime().optional().describe('Not before this time.'),
    stopAt: inputTime().optional().describe('It stops at this time, wherever it is.'),
    confirm,
    note: note.optional().describe('Why, for those who find it later.'),
  })
  .superRefine(({ startAt, stopAt }, context) => {
    if (startAt && stopAt && startAt >= stopAt)
      context.addIssue({ code: 'custom', path: ['stopAt'], message: 'Is not after startAt.', input: stopAt });
  })
  .meta({ id: 'ReplayInput' });

export const cancelInput = z
  .strictObject({ selection: selectionInput, confirm, note: note.optional() })
  .meta({ id: 'CancelInput' });

export const closeInput = z
  .strictObject({
    selection: selectionInput,
    confirm,
    note: note.describe('Why nobody has to look at them any more.'),
  })
  .meta({ id: 'CloseInput' });

/** The cursor is the id of the last one of a page. */
const fromCursor = (cursor: string): string | undefined => (isUuid(cursor) ? cursor : undefined);

export const replaysQuery = z.strictObject({
  kind: z.enum(replayKinds).optional(),
  state: z.enum(replayStates).optional(),
  ...pageQuery('replays', fromCursor),
});

/**
 * Checks that a selection fits the treatment that is asked for it.
 * @throws {ValidationProblem}
 */
export function checkFits(kind: ReplayKind, selection: Selection, missedOnly: boolean): void {
  const wrong: InvalidParam[] = [];
  selection.states?.forEach((state, index) => {
    const name = `selection.states.${index}`;
    if (!statesOf[kind].allowed.includes(state))
      wrong.push({ name, code: 'invalid_choice', reason: `Is none of ${statesOf[kind].allowed.join(', ')}.` });
    else if (state === 'delivered' && missedOnly)
      wrong.push({ name, code: 'invalid', reason: 'With onlyMissed, nothing that has been delivered is sent again.' });
  });
  if (kind !== 'replay' && selection.everythingFor !== undefined)
    wrong.push({ name: 'selection.everythingFor', code: 'invalid', reason: 'Is for a replay only.' });
  if (kind === 'cancel' && selection.groups)
    wrong.push({ name: 'selection.groups', code: 'invalid', reason: 'Dead letters have ended: they can be closed.' });
  if (wrong.length > 0) throw new ValidationProblem(wrong);
}

export const dryRunOutput = z
  .strictObject({
    count: z
      .int()
      .describe(
        'Deliveries that are meant. Of these a replay passes over those of subscriptions that are deleted or disabled, and those of notifications whose bodies have been erased.',
      ),
    isComplete: z.boolean().describe('All that the selection may mean was looked at.'),
    searchedTo: time()
      .nullable()
      .describe('Where it is not complete: only notifications that were accepted before this time were looked at.'),
    notifications: z.int().describe('Notifications that these deliveries are of.'),
    bySubscription: z
      .array(z.strictObject({ subscriptionId: z.uuid(), subscription: z.enum(subscriptionStates), count: z.int() }))
      .describe('The hundred subscriptions with most of them.'),
    sample: z
      .array(z.strictObject({ notificationId: z.uuid(), subscriptionId: z.uuid() }))
      .describe('The oldest twenty.'),
    needsConfirm: z.boolean().describe('It is done only with `confirm`.'),
    asOf: time().describe('Notifications accepted later are not meant.'),
  })
  .meta({ id: 'ReplayDryRun' });

export interface DryRun extends Counted {
  needsConfirm: boolean;
  /** Milliseconds since 1970. */
  asOf: number;
}

const mostShown = 100;

export function dryRunToShow(
  { count, notifications, bySubscription, sample, searchedTo, needsConfirm, asOf }: DryRun,
  find: (id: string) => Subscription | undefined,
): z.output<typeof dryRunOutput> {
  const most = [...bySubscription].sort(([, one], [, other]) => other - one).slice(0, mostShown);
  return {
    count,
    isComplete: searchedTo === undefined,
    searchedTo: searchedTo === undefined ? null : new Date(searchedTo).toISOString(),
    notifications,
    bySubscription: most.map(([subscriptionId, ofIt]) => ({
      subscriptionId,
      subscription: stateOf(find(subscriptionId)),
      count: ofIt,
    })),
    sample,
    needsConfirm,
    asOf: new Date(asOf).toISOString(),
  };
}

export const replayOutput = z
  .strictObject({
    id: z.uuid(),
    kind: z.enum(replayKinds),
    state: z.enum(replayStates),
    stoppedBecause: z
      .literal([...stopReasons, null])
      .meta({ type: 'string', nullable: true })
      .describe('Why it is `stopped`.'),
    selection: selectionOutput.describe('As it was asked for; `states` are those that are meant.'),
    onlyMissed: z.boolean(),
    ratePerSecond: z.number().nullable().describe('null: as fast as the ledger takes it.'),
    startAt: time().nullable(),
    stopAt: time().nullable(),
    note: z.string().nullable(),
    count: z.int().describe('Deliveries that it was found to mean when it was created.'),
    isCountComplete: z.boolean().describe('false: there are more than `count`, or may be.'),
    found: z.int().describe('Deliveries that it has come to so far.'),
    done: z.int().describe('Of these, those that it has sent again, cancelled or closed.'),
    skipped: z
      .strictObject({
        subscriptionDeleted: z.int(),
        subscriptionDisabled: z.int(),
        bodyErased: z.int().describe('The text of the notification has been erased.'),
        changed: z.int().describe('It was in another state by then: delivered, for example.'),
      })
      .describe('Those that it has passed over, and left as they were.'),
    searchedTo: time().describe('It has come to notifications that were accepted at this time.'),
    createdAt: time(),
    createdBy: z
      .string()
      .nullable()
      .describe('Client id of the application that asked for it; of a user of the console, the name of the user.'),
    startedAt: time().nullable(),
    endedAt: time().nullable(),
  })
  .meta({ id: 'Replay' });

export const replayPageOutput = z
  .strictObject({
    replays: z.array(replayOutput),
    nextCursor,
  })
  .meta({ id: 'ReplayPage' });

export const replayToShow = (replay: Replay): z.output<typeof replayOutput> => ({
  id: replay.id,
  kind: replay.kind,
  state: replay.state,
  stoppedBecause: replay.stoppedBecause,
  selection: { ...replay.selection, states: [...replay.states] },
  onlyMissed: replay.onlyMissed,
  ratePerSecond: replay.ratePerSecond,
  startAt: replay.startAt?.toISOString() ?? null,
  stopAt: replay.stopAt?.toISOString() ?? null,
  note: replay.note,
  count: replay.counted,
  isCountComplete: replay.isCountWhole,
  found: replay.found,
  done: replay.done,
  skipped: { subscriptionDeleted: 0, subscriptionDisabled: 0, bodyErased: 0, changed: 0, ...replay.skipped },
  searchedTo: new Date(timeOfId(replay.after.notificationId)).toISOString(),
  createdAt: replay.createdAt.toISOString(),
  createdBy: replay.createdBy,
  startedAt: replay.startedAt?.toISOString() ?? null,
  endedAt: replay.endedAt?.toISOString() ?? null,
});

export const replaysToShow = (replays: readonly Replay[], limit: number): z.output<typeof replayPageOutput> => ({
  replays: replays.slice(0, limit).map(replayToShow),
  nextCursor: replays.length > limit ? replays[limit - 1]!.id : null,
});
