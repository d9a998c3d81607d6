import * as z from 'zod';
import { errorClasses } from '../deliveries/error-class.js';
import { searchQuery } from '../deliveries/search-query.js';
import { deadStates } from '../ledger/delivery.js';
import { timeOfId } from '../ledger/partitions.js';
import { stateOf, subscriptionStates } from '../subscriptions/subscription-state.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { DeadLetterGroup, Sought } from './dead-letter-groups.service.js';
import type { GroupsAsOf } from './kept-groups.service.js';

const time = () => z.iso.datetime();
const { subscription, channel, errorClass, replay, acceptedFrom, acceptedTo } = searchQuery;

export const deadLettersQuery = z.strictObject({
  subscription,
  channel,
  state: z.enum(deadStates).optional(),
  errorClass,
  replay,
  acceptedFrom,
  acceptedTo,
});

export const soughtBy = (query: z.output<typeof deadLettersQuery>): Sought => ({
  subscriptionId: query.subscription,
  channel: query.channel,
  state: query.state,
  errorClass: query.errorClass,
  replayId: query.replay,
  from: query.acceptedFrom,
  before: query.acceptedTo,
});

const groupOutput = z
  .strictObject({
    subscriptionId: z.uuid(),
    subscription: z
      .enum(subscriptionStates)
      .describe('A delivery for one that is deleted or disabled cannot be sent again.'),
    callbackUrl: z.string().nullable().describe('null: the subscription is deleted.'),
    owner: z.string().nullable().describe('Client id of the application that the subscription belongs to.'),
    state: z.enum(deadStates),
    errorClass: z.enum(errorClasses),
    count: z.int(),
    isAtLeast: z
      .boolean()
      .describe('There may be more than `count`: not all were looked at. A dry run counts further.'),
    oldestAcceptedAt: time().describe('Of the notifications of those that were looked at.'),
    newestAcceptedAt: time(),
    lastEndedAt: time().describe('When the last one became a dead letter.'),
    newest: z
      .strictObject({ notificationId: z.uuid(), lastStatus: z.int().nullable(), lastError: z.string().nullable() })
      .describe('The one of the newest notification.'),
  })
  .meta({ id: 'DeadLetterGroup' });

export const deadLettersOutput = z
  .strictObject({
    groups: z.array(groupOutput).describe('At most 500: those with most dead letters first.'),
    groupsLeftOut: z.int().describe('Groups that were found beside these.'),
    count: z.int().describe('Of all groups that were found.'),
    subscriptions: z.int().describe('Those that have any in the groups that were found, shown or left out.'),
    isComplete: z.boolean().describe('All dead letters that are sought were looked at: the counts are exact.'),
    searchedTo: time()
      .nullable()
      .describe('Only notifications that were accepted from this time on were looked at; null: those of all times.'),
    asOf: time().describe('When it was counted: an answer that took long is given again for up to ten seconds.'),
  })
  .meta({ id: 'DeadLetters' });

const mostShown = 500;

export function deadLettersToShow(
  { groups, isComplete, searchedTo, asOf }: GroupsAsOf,
  find: (id: string) => Subscription | undefined,
): z.output<typeof deadLettersOutput> {
  return {
    groups: groups.slice(0, mostShown).map((group) => groupToShow(group, find(group.subscriptionId))),
    groupsLeftOut: Math.max(0, groups.length - mostShown),
    count: groups.reduce((sum, { count }) => sum + count, 0),
    subscriptions: new Set(groups.map(({ subscriptionId }) => subscriptionId)).size,
    isComplete,
    searchedTo: searchedTo === undefined ? null : new Date(searchedTo).toISOString(),
    asOf: asOf.toISOString(),
  };
}

const timeOf = (id: string): string => new Date(timeOfId(id)).toISOString();

const groupToShow = (group: DeadLetterGroup, subscription: Subscription | undefined): z.output<typeof groupOutput> => ({
  subscriptionId: group.subscriptionId,
  subscription: stateOf(subscription),
  callbackUrl: subscription?.callbackUrl ?? null,
  owner: subscription?.ownerClientId ?? null,
  state: group.state,
  errorClass: group.errorClass,
  count: group.count,
  isAtLeast: group.isAtLeast,
  oldestAcceptedAt: timeOf(group.oldest),
  newestAcceptedAt: timeOf(group.newest),
  lastEndedAt: group.lastEndedAt.toISOString(),
  newest: { notificationId: group.newest, lastStatus: group.lastStatus, lastError: group.lastError },
});
