import * as z from 'zod';
import { uuid } from '../infra/http/input-parts.js';
import { pageQuery } from '../infra/http/page-query.js';
import { byCreation, type ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import { inputText as text } from '../subscriptions/subscription-input.js';
import { endpointsMeant, endpointsOf, longestAddress } from './origin.js';

const listedStates = ['enabled', 'paused', 'disabled', 'unreadable', 'parked'] as const;
type ListedState = (typeof listedStates)[number];

const mostIds = 100;

/** As a query names them. */
export const subscriptionIds = z
  .string()
  .transform((given) => given.split(','))
  .pipe(z.array(uuid()).min(1).max(mostIds))
  .meta({ type: 'string' })
  .describe(`UUIDs of subscriptions, separated by commas, ${mostIds} at most.`);

type PagePosition = Pick<ListedSubscription, 'createdAt' | 'id'>;

export const subscriptionListQuery = z.strictObject({
  state: z
    .enum(listedStates)
    .optional()
    .describe(
      '`unreadable`: its secrets cannot be decrypted by the process that answers. `parked`: the circuit breaker of its endpoint is open. One can be paused, disabled and parked at once.',
    ),
  owner: text(255).optional().describe('Client id of the application that it belongs to.'),
  channel: text(50).optional().describe('Name of a channel that it is about.'),
  endpoint: text(longestAddress)
    .optional()
    .describe(
      'Address of an endpoint that it leads to, as `GET /admin/v1/endpoints` lists it: an origin, or a URL, with its TLS identity where it has one. Where none leads to one that reads like that, the callback URL in any spelling; where all of those have a TLS identity of their own, each of them.',
    ),
  text: text(200).optional().describe('Part of its id, callback URL, owner or a channel, in any case of letters.'),
  ids: subscriptionIds.optional(),
  ...pageQuery('subscriptions', fromCursor, 'Left out: all of them are in one.'),
});

type SubscriptionListQuery = z.output<typeof subscriptionListQuery>;

export interface SubscriptionPage {
  subscriptions: ListedSubscription[];
  /** Of all that fit. */
  count: number;
  nextCursor: string | null;
}

/** @param all the oldest first */
export function pageOfSubscriptions(
  all: readonly ListedSubscription[],
  isParked: (subscription: ListedSubscription) => boolean,
  { limit = Infinity, cursor, state, endpoint, ...filter }: SubscriptionListQuery,
): SubscriptionPage {
  const ids = filter.ids && new Set(filter.ids);
  const isIn = state === 'parked' ? isParked : state && states[state];
  const meant = endpoint === undefined ? undefined : endpointsMeant(endpoint, all);
  const leadsThere = (subscription: ListedSubscription) =>
    endpoint === undefined || (meant !== undefined && endpointsOf(subscription).some((address) => meant.has(address)));
  const fitting = all.filter(
    (subscription) =>
      (!ids || ids.has(subscription.id)) &&
      (!isIn || isIn(subscription)) &&
      leadsThere(subscription) &&
      fits(subscription, filter),
  );
  const rest = cursor ? fitting.filter((subscription) => byCreation(subscription, cursor) > 0) : fitting;
  const subscriptions = rest.slice(0, limit);
  return {
    subscriptions,
    count: fitting.length,
    nextCursor: rest.length > limit ? toCursor(subscriptions.at(-1)!) : null,
  };
}

const states: Record<Exclude<ListedState, 'parked'>, (subscription: ListedSubscription) => boolean> = {
  enabled: ({ disabledAt, pausedAt }) => !disabledAt && !pausedAt,
  paused: ({ pausedAt }) => pausedAt !== null,
  disabled: ({ disabledAt }) => disabledAt !== null,
  unreadable: ({ unreadable }) => unreadable !== null,
};

function fits(
  subscription: ListedSubscription,
  { owner, channel, text: part }: Pick<SubscriptionListQuery, 'owner' | 'channel' | 'text'>,
): boolean {
  const { id, ownerClientId, callbackUrl, channels } = subscription;
  if (owner !== undefined && ownerClientId !== owner) return false;
  if (channel !== undefined && !channels.some((entry) => entry.channel === channel)) return false;
  if (part === undefined) return true;
  const wanted = part.toLowerCase();
  const texts = [id, callbackUrl, ownerClientId, ...channels.map((entry) => entry.channel)];
  return texts.some((each) => each.toLowerCase().includes(wanted));
}

const toCursor = ({ createdAt, id }: PagePosition): string => Buffer.from(`${createdAt} ${id}`).toString('base64url');

function fromCursor(cursor: string): PagePosition | undefined {
  const [, createdAt, id] =
    /^(\d{1,12}(?:\.\d{1,9})?) ([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  return createdAt === undefined || id === undefined ? undefined : { createdAt: Number(createdAt), id };
}
