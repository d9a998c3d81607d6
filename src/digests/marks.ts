import { canonicalName } from '../channels/filter-names.js';

/** What a notification can be found by: each mark is a name and a value. */
export const markOf = {
  channel: (name: string) => `channel ${name}`,
  /** Client id. */
  publisher: (clientId: string) => `publisher ${clientId}`,
  /** The publisher's. */
  key: (key: string) => `key ${key}`,
  mainObject: (url: string) => `main-object ${url}`,
  resourceUrl: (url: string) => `resource-url ${url}`,
  action: (action: string) => `action ${action}`,
  characteristic: (name: string, value: string) => `characteristic ${canonicalName(name)} ${value}`,
  subscription: (id: string) => `subscription ${id}`,
  /** Of a subscription; its client id. */
  owner: (clientId: string) => `owner ${clientId}`,
};

/** Of a notification without a delivery. */
export const unmatchedMark = 'unmatched';

export interface MarkedNotification {
  channel: string;
  publisher: string;
  requestKey: string | null;
  /** Null: it was erased. */
  body: string | null;
}

/** Those that a notification has by itself; its deliveries add those of their subscriptions. */
export function marksOf({ channel, publisher, requestKey, body }: MarkedNotification): string[] {
  const marks = [markOf.channel(channel), markOf.publisher(publisher)];
  if (requestKey !== null) marks.push(markOf.key(requestKey));
  if (body === null) return marks;
  const content = JSON.parse(body) as Record<string, unknown>;
  for (const [field, mark] of contentMarks) {
    const value = content[field];
    if (typeof value === 'string') marks.push(mark(value));
  }
  for (const [name, value] of Object.entries(content['kenmerken'] ?? {}))
    if (typeof value === 'string') marks.push(markOf.characteristic(name, value));
  return marks;
}

const contentMarks = [
  ['hoofdObject', markOf.mainObject],
  ['resourceUrl', markOf.resourceUrl],
  ['actie', markOf.action],
] as const;
