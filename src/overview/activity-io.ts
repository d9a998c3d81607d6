import * as z from 'zod';
import type { Total } from '../activity/activity-rows.js';
import { subscriptionIds } from '../endpoints/subscription-list.js';
import { storable } from '../infra/http/input-parts.js';
import { fromCursor, toCursor } from '../infra/http/name-page.js';
import { cursorInput, nextCursor } from '../infra/http/page-query.js';
import { isUuid } from '../infra/uuid-text.js';
import { spanNames } from './spans.js';

const subjects = ['channel', 'subscription', 'application'] as const;

export const countsShape = {
  accepted: z.int().describe('Notifications that were accepted; 0 of a subscription.'),
  duplicates: z
    .int()
    .describe('Notifications that a rule of their channel found equal to earlier ones; 0 of a subscription.'),
  delivered: z
    .int()
    .describe(
      'Deliveries that succeeded, and those that their subscriber has fetched and acknowledged; 0 of a channel or application.',
    ),
  failedAttempts: z.int().describe('Calls to receivers that did not succeed; 0 of a channel or application.'),
  gaveUp: z.int().describe('Deliveries that became dead letters; 0 of a channel or application.'),
};

const span = z.enum(spanNames).default('24h').describe('How far back, up to now.');

export const activityQuery = z
  .strictObject({
    of: z.enum(['all', ...subjects]).default('all'),
    id: z
      .string()
      .min(1)
      .max(255)
      .check(storable)
      .optional()
      .describe('The name of a channel, the id of a subscription, the client id of an application; not with `all`.'),
    span,
  })
  .overwrite((query) => ({ ...query, ...(query.of === 'subscription' && { id: query.id?.toLowerCase() }) }))
  .refine(({ of, id }) => of !== 'subscription' || id === undefined || isUuid(id), {
    error: 'Is no id of a subscription.',
    path: ['id'],
  })
  .refine(({ of, id }) => of === 'all' || id !== undefined, {
    error: 'Is needed with every `of` but `all`.',
    path: ['id'],
  })
  .refine(({ of, id }) => of !== 'all' || id === undefined, {
    error: 'Is not for `all`, which is meant where `of` is left out: that says what the id is of.',
    path: ['id'],
  });

export const activityOutput = z
  .strictObject({
    bucketSeconds: z.int(),
    countedUntil: z.iso
      .datetime()
      .describe('Every process has added what happened before this time; later things may be missing still.'),
    buckets: z
      .array(z.strictObject({ at: z.iso.datetime().describe('Its beginning.'), ...countsShape }))
      .describe('The oldest first, without gaps. The last one is not over yet.'),
  })
  .meta({ id: 'Activity' });

export const totalsQuery = z
  .strictObject({
    of: z.enum(subjects),
    span,
    ids: subscriptionIds.optional(),
    cursor: cursorInput(fromCursor, z.string().max(1024)),
  })
  .refine(({ of, ids }) => of === 'subscription' || ids === undefined, {
    error: 'Is for `subscription` only.',
    path: ['ids'],
  })
  .refine(({ ids, cursor }) => ids === undefined || cursor === undefined, {
    error: 'Is not for `ids`: all of those are in one answer.',
    path: ['cursor'],
  });

export const mostTotals = 1000;

export const totalsOutput = z
  .strictObject({
    since: z.iso
      .datetime()
      .describe('Events from then on are counted: those of the first hour, or minute, as a whole.'),
    totals: z
      .array(
        z.strictObject({
          id: z
            .string()
            .describe('The name of a channel, the id of a subscription, or the client id of an application.'),
          ...countsShape,
          lastAt: z.iso.datetime().describe('When something was last counted, to ten seconds.'),
        }),
      )
      .describe(`Of those with which anything happened, in the order of their ids; at most ${mostTotals}.`),
    nextCursor,
  })
  .meta({ id: 'ActivityTotals' });

/** @param totals one more than are shown tells that the list goes on */
export function totalsToShow(since: number, totals: readonly Total[]): z.output<typeof totalsOutput> {
  const shown = totals.slice(0, mostTotals);
  return {
    since: new Date(since).toISOString(),
    totals: shown.map(({ id, counts, lastAt }) => ({ id, ...counts, lastAt: lastAt.toISOString() })),
    nextCursor: totals.length > mostTotals ? toCursor(shown.at(-1)!.id) : null,
  };
}
