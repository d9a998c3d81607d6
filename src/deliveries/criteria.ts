import { canonicalName, outgoingName } from '../channels/filter-names.js';
import { mayHave } from '../digests/mark-filter.js';
import { characteristicKind, markOf, type MarkKind } from '../digests/marks.js';
import type { Values } from '../infra/postgres/statement.js';
import type { DeliveryState } from '../ledger/delivery.js';
import { canonicalNameInSql, lettersOf, withoutFinalSigma } from './canonical-name-in-sql.js';
import { errorClassCondition, type ErrorClass } from './error-class.js';

/** All of those that are given must be met. */
export interface Criteria extends AboutNotification, AboutDelivery {
  notificationId?: string;
  /** The lowest ids of a time: not before the first, and before the second. No notification has either. */
  from?: string;
  before?: string;
}

export interface AboutNotification {
  channel?: string;
  /** Client id. */
  publisher?: string;
  mainObject?: string;
  resourceUrl?: string;
  action?: string;
  characteristics?: readonly { name: string; value: string }[];
  /** The publisher's. */
  key?: string;
  /** It has no delivery. */
  isUnmatched?: true;
}

/** Of one delivery. */
interface AboutDelivery {
  subscriptionId?: string;
  /** Client id of the application that the subscription belongs to. */
  owner?: string;
  state?: DeliveryState;
  minAttempts?: number;
  lastStatus?: number;
  errorClass?: ErrorClass;
  /** The replay that last sent it again, cancelled or closed it with others. */
  replayId?: string;
}

/** The conditions of SQL, and the values of their parameters. */
export interface Conditions {
  texts: string[];
  values: Values;
}

/** Over a row `n` of `notification`. */
export function notificationConditions(criteria: AboutNotification): Conditions {
  const { channel, publisher, mainObject, resourceUrl, action, characteristics = [], key, isUnmatched } = criteria;
  const texts: string[] = [];
  const values: Record<string, unknown> = {};
  const add = (name: string, value: string | undefined, text: string) => {
    if (value === undefined) return;
    texts.push(text);
    values[name] = value;
  };
  add('channel', channel, 'n.channel = $channel');
  add('publisher', publisher, 'n.publisher = $publisher');
  add('key', key, 'n.request_key = $key');
  for (const [field, name, value] of [
    ['hoofdObject', 'main_object', mainObject],
    ['resourceUrl', 'resource_url', resourceUrl],
    ['actie', 'action', action],
  ] as const) {
    if (value === undefined) continue;
    values[`${name}_written`] = `"${field}":${JSON.stringify(value)}`;
    add(name, value, written(name, `n.body::json ->> '${field}' = $${name}`));
  }
  characteristics.forEach(({ name, value }, nr) => {
    const value_ = `value_${nr}`;
    values[`${value_}_written`] = `:${JSON.stringify(value)}`;
    const names = namesInBody(name);
    const { upper, lower } = lettersOf(names);
    values[`names_${nr}`] = names.map(withoutFinalSigma);
    values[`upper_${nr}`] = upper;
    values[`lower_${nr}`] = lower;
    const isOne = `SELECT FROM json_each_text(n.body::json -> 'kenmerken') AS k (name, value)
      WHERE k.value = $${value_} AND ${canonicalNameInSql('k.name', `$upper_${nr}`, `$lower_${nr}`)} = ANY ($names_${nr}::text[])`;
    add(value_, value, written(value_, `EXISTS (${isOne})`));
  });
  if (isUnmatched) texts.push('NOT EXISTS (SELECT FROM delivery d WHERE d.notification_id = n.id)');
  return { texts, values };
}

/**
 * The canonical names under which a characteristic may stand in a body: `punt_x_y` is sent as `puntXY`, which is
 * `punt_xy`, and as itself where it was spelt `puntX_y`, or came beside a `puntXY`.
 */
const namesInBody = (name: string): string[] => [...new Set([name, outgoingName(name)].map(canonicalName))];

/** A text is read as JSON only where it contains the value as Heraut writes it. */
const written = (name: string, condition: string): string =>
  `CASE WHEN position($${name}_written IN n.body) > 0 THEN ${condition} ELSE false END`;

/** Over a row of `delivery`, without an alias. */
export function deliveryConditions(criteria: AboutDelivery): Conditions {
  const { subscriptionId, owner, state, minAttempts, lastStatus, errorClass, replayId } = criteria;
  const texts: string[] = [];
  const values: Record<string, unknown> = {};
  const add = (name: string, value: string | number | undefined, text: string) => {
    if (value === undefined) return;
    texts.push(text);
    values[name] = value;
  };
  add('subscription', subscriptionId, 'subscription_id = $subscription');
  add('owner', owner, 'subscription_id IN (SELECT s.id FROM subscription s WHERE s.owner_client_id = $owner)');
  add('min_attempts', minAttempts, 'attempts >= $min_attempts');
  add('last_status', lastStatus, 'last_status = $last_status');
  add('replay', replayId, 'replay_id = $replay');
  // As constants, not parameters: a partial index serves only a query that provably has its condition.
  if (state !== undefined) texts.push(`state = '${state}'`);
  if (errorClass !== undefined) texts.push(errorClassCondition(errorClass));
  return { texts, values };
}

/** The conditions on the notification, and all others. */
export function apart(criteria: Criteria): [of: AboutNotification, others: Criteria] {
  const { channel, publisher, mainObject, resourceUrl, action, characteristics, key, isUnmatched, ...others } =
    criteria;
  return [{ channel, publisher, mainObject, resourceUrl, action, characteristics, key, isUnmatched }, others];
}

export const isAboutNotification = (criteria: AboutNotification): boolean =>
  notificationConditions(criteria).texts.length > 0;

/** Whether only its body tells: it is read. */
export const isAboutBody = ({ mainObject, resourceUrl, action, characteristics = [] }: AboutNotification): boolean =>
  [mainObject, resourceUrl, action].some((value) => value !== undefined) || characteristics.length > 0;

export const isAboutDelivery = (criteria: AboutDelivery): boolean => deliveryConditions(criteria).texts.length > 0;

/**
 * SQL: whether what is looked for may be among the notifications of a row of `digest`; undefined: digests do not tell.
 * @param owned ids of the subscriptions that the owner has, if one is looked for; undefined: they are too many to ask
 *   for each
 */
export function digestCondition(criteria: Criteria, owned?: readonly string[]): string | undefined {
  const { characteristics = [] } = criteria;
  const wanted: [MarkKind, string | undefined][] = [
    ['channel', criteria.channel],
    ['publisher', criteria.publisher],
    ['key', criteria.key],
    ['main-object', criteria.mainObject],
    ['resource-url', criteria.resourceUrl],
    ['action', criteria.action],
    ['subscription', criteria.subscriptionId],
    ['unmatched', criteria.isUnmatched && ''],
  ];
  const all = wanted.flatMap(([kind, value]) => (value === undefined ? [] : [mayHave(markOf(kind, value))]));
  for (const { name, value } of characteristics) {
    const under = namesInBody(name).map((each) => mayHave(markOf(characteristicKind(each), value)));
    all.push(under.length === 1 ? under[0]! : `(${under.join(' OR ')})`);
  }
  if (owned) all.push(`(${owned.map((id) => mayHave(markOf('subscription', id))).join(' OR ') || 'false'})`);
  return all.length === 0 ? undefined : all.join(' AND ');
}
