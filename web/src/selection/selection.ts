import type { components } from '../../generated/admin-api.d.ts';
import type { DeliveryState } from '../parts/delivery-state.tsx';
import type { ErrorClass } from '../parts/error-class.ts';
import { momentOf } from '../parts/moment.ts';
import { allOf, longestSearch, type UrlState } from '../parts/url-state.ts';
import { isUuid } from '../parts/uuid.ts';

type Schemas = components['schemas'];
/** Which deliveries are meant, as the admin API takes it. */
export type Selection = Schemas['Selection'];
export type Replay = Schemas['Replay'];
export type DryRun = Schemas['ReplayDryRun'];
export type Group = NonNullable<Selection['groups']>[number];
export type DeliveryKey = NonNullable<Selection['deliveries']>[number];

/** Something can be sent to it, now or once it is resumed. */
export const getsDeliveries = (subscription: 'active' | 'paused' | 'disabled' | 'deleted'): boolean =>
  subscription === 'active' || subscription === 'paused';

export const deadStates = ['failed', 'expired', 'unknown'] as const;
export const unfinishedStates = ['queued', 'waiting', 'held', 'sending'] as const;

export const idOfGroup = ({ subscriptionId, state, errorClass }: Group): string =>
  [subscriptionId, state, errorClass].join('~');

export const idOfDelivery = ({ notificationId, subscriptionId }: DeliveryKey): string =>
  `${notificationId}~${subscriptionId}`;

export function deliveryOf(id: string): DeliveryKey | undefined {
  const [notificationId = '', subscriptionId = ''] = id.split('~');
  return isUuid(notificationId) && isUuid(subscriptionId) ? { notificationId, subscriptionId } : undefined;
}

/** Those fields of a selection that stand in the address of a page, under the names of lists of the API. */
export interface Criteria {
  notification?: string;
  subscriptions: string[];
  channels: string[];
  states: DeliveryState[];
  errorClasses: ErrorClass[];
  acceptedFrom?: string;
  acceptedTo?: string;
  replay?: string;
}

/**
 * An address may have anything. A value that the API does not understand stays as it is, and the API refuses it:
 * without it, everything would be meant. So do two values where there can be one: the first alone would mean more.
 */
export const criteriaOf = (state: UrlState): Criteria => ({
  notification: onlyOf(state['notification']),
  subscriptions: allOf(state['subscription']),
  channels: allOf(state['channel']),
  states: allOf(state['state']) as DeliveryState[],
  errorClasses: allOf(state['errorClass']) as ErrorClass[],
  acceptedFrom: timeOf(state['acceptedFrom']),
  acceptedTo: timeOf(state['acceptedTo']),
  replay: onlyOf(state['replay']),
});

const onlyOf = (value: UrlState[string]): string | undefined => allOf(value).join(' ') || undefined;

function timeOf(value: UrlState[string]): string | undefined {
  const text = onlyOf(value);
  return text === undefined ? undefined : (momentOf(text) ?? text);
}

/** Only with the fields that narrow it; the API wants to hear it where none does. */
export function selectionOf(criteria: Partial<Criteria>, more: Partial<Selection> = {}): Selection {
  const narrowing: Selection = withoutEmpty({
    notification: criteria.notification,
    subscriptions: criteria.subscriptions,
    channels: criteria.channels,
    errorClasses: criteria.errorClasses,
    acceptedFrom: criteria.acceptedFrom,
    acceptedTo: criteria.acceptedTo,
    replay: criteria.replay,
    ...more,
  });
  const states = withoutEmpty({ states: criteria.states });
  return Object.keys(narrowing).length === 0 ? { all: true, ...states } : { ...narrowing, ...states };
}

/**
 * Without what is accepted after a selection was counted: what is still being published while somebody reads how much
 * it means is not meant.
 * @param asOf of the count, which has what was accepted at that very millisecond
 */
export function untilCounted(given: Selection, asOf: string): Selection {
  const { all: _, ...selection } = given;
  const end = Date.parse(asOf) + 1;
  const { acceptedTo, notification } = selection;
  // Nothing is published into one that is there; and its time may lie ahead, where Postgres' clock was set back.
  if (notification !== undefined) return selection;
  if (acceptedTo !== undefined && Date.parse(acceptedTo) <= end) return selection;
  return { ...selection, acceptedTo: new Date(end).toISOString() };
}

function withoutEmpty<T extends object>(given: T): Partial<T> {
  const entries = Object.entries(given) as [string, unknown][];
  return Object.fromEntries(
    entries.filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0)),
  ) as Partial<T>;
}

/** Whether dead letters of which it is not known whether they arrived are not meant, although no state is named. */
export const leavesOutUnknown = (kind: Replay['kind'], { states, groups }: Selection): boolean =>
  kind === 'replay' && states === undefined && groups === undefined;

/** Each takes 75 bytes of an address at most. */
const mostGroupsInAddress = Math.floor(longestSearch / 75) - 5;

/** Of a selection, what the address of dead letters can say. */
const sayable: ReadonlySet<string> = new Set<keyof Selection>([
  'all',
  'subscriptions',
  'channels',
  'errorClasses',
  'states',
  'acceptedFrom',
  'acceptedTo',
  'replay',
  'groups',
]);

/**
 * Where the dead letters that a selection means are shown; undefined where no address says it: one that leaves
 * something out leads to others.
 */
export function deadLettersOf(selection: Selection): UrlState | undefined {
  const { subscriptions = [], channels = [], errorClasses = [], states = [...deadStates], groups = [] } = selection;
  const dead = deadStates.filter((state) => states.includes(state));
  const areAll = dead.length === deadStates.length;
  const isSaid =
    Object.keys(withoutEmpty(selection)).every((name) => sayable.has(name)) &&
    [subscriptions, channels, errorClasses].every(({ length }) => length <= 1) &&
    (areAll || dead.length === 1) &&
    groups.length <= mostGroupsInAddress;
  if (!isSaid) return undefined;
  const { acceptedFrom, acceptedTo, replay } = selection;
  return withoutEmpty({
    subscription: subscriptions[0],
    channel: channels[0],
    errorClass: errorClasses[0],
    state: areAll ? undefined : dead[0],
    acceptedFrom,
    acceptedTo,
    replay,
    group: groups.map(idOfGroup),
  });
}
