import { canonicalName } from '../channels/filter-names.js';

/** A notification can be found by its marks: each is of a kind, and has a value. */
export const markOf = (kind: MarkKind, value: string): string => `${kind} ${value}`;

export type MarkKind =
  | 'channel'
  /** Client id. */
  | 'publisher'
  /** The publisher's. */
  | 'key'
  | 'main-object'
  | 'resource-url'
  | 'action'
  /** With its canonical name. */
  | `characteristic ${string}`
  /** Id. Of what else a subscription has there is no mark, as it may get another owner. */
  | 'subscription'
  /** It has no delivery; the value is empty. */
  | 'unmatched';

export const characteristicKind = (name: string): MarkKind => `characteristic ${canonicalName(name)}`;

export interface MarkedNotification {
  channel: string;
  publisher: string;
  requestKey: string | null;
  /** Null: it was erased. */
  body: string | null;
}

/**
 * Gives those that a notification has by itself; its deliveries add those of their subscriptions. Kind and value apart:
 * most are the same as another one's, and to put the two together and to read the result costs more than all the rest.
 */
export function giveMarks(
  { channel, publisher, requestKey, body }: MarkedNotification,
  give: (kind: MarkKind, value: string) => void,
): void {
  give('channel', channel);
  give('publisher', publisher);
  if (requestKey !== null) give('key', requestKey);
  if (body === null) return;
  const { hoofdObject, resourceUrl, actie, kenmerken } = JSON.parse(body) as Record<string, unknown>;
  if (typeof hoofdObject === 'string') give('main-object', hoofdObject);
  if (typeof resourceUrl === 'string') give('resource-url', resourceUrl);
  if (typeof actie === 'string') give('action', actie);
  for (const [name, value] of Object.entries(kenmerken ?? {}))
    if (typeof value === 'string') give(characteristicKind(name), value);
}
