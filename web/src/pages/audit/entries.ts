import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import type { ComparedField } from '../../parts/field-diff.tsx';

export type AuditPage = components['schemas']['AuditPage'];
export type Entry = AuditPage['entries'][number];

export interface EntryFilter {
  client?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  /** ISO 8601. */
  from?: string | undefined;
  to?: string | undefined;
}

/**
 * More than a tall window shows: of a list that reads on by itself more than one page is there, and that stays as it
 * is.
 */
const pageLength = 100;

export const readEntries = (
  filter: EntryFilter,
  cursor: string | undefined,
  signal?: AbortSignal,
): Promise<AuditPage> => {
  const given = Object.fromEntries(Object.entries({ ...filter, cursor }).filter(([, value]) => value));
  return answerOf(api.GET('/admin/v1/audit', { params: { query: { ...given, limit: pageLength } }, signal }));
};

/** The place of an entry in an address: its time is where it is found again. */
export const placeOf = ({ id, at }: Entry): string => `${id}@${at}`;

/** @param place as `placeOf` writes it */
export async function findEntry(place: string, signal?: AbortSignal): Promise<Entry | null> {
  const [id, at = ''] = place.split('@', 2);
  const time = Date.parse(at);
  if (Number.isNaN(time)) return null;
  // The log has microseconds, and an answer milliseconds.
  const [from, to] = [new Date(time).toISOString(), new Date(time + 1).toISOString()];
  let cursor: string | undefined;
  do {
    const { entries, nextCursor } = await readEntries({ from, to }, cursor, signal);
    const found = entries.find((entry) => entry.id === id);
    if (found) return found;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
  return null;
}

/** The fields that an entry is about, before and after. */
export function comparedFields({ before, after, changedSecrets }: Entry, secretChanged: string): ComparedField[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return [
    ...names.map((name) => ({ name, before: before?.[name], after: after?.[name] })),
    ...changedSecrets.map((name) => ({ name, before: undefined, after: undefined, instead: secretChanged })),
  ];
}

/** The actions that the log may have (docs/logs.md), for a list to choose from. Others can be typed. */
export const knownActions = [
  'alert-rules.changed',
  'alerts.tested',
  'application.changed',
  'application.created',
  'application.deleted',
  'application.secret-rotated',
  'channel.changed',
  'channel.created',
  'channel.deleted',
  'delivery.cancelled',
  'delivery.retried',
  'endpoint.reset',
  'erasure.confirmed',
  'erasure.done',
  'erasure.requested',
  'replay.cancelled',
  'replay.created',
  'replay.done',
  'replay.paused',
  'replay.resumed',
  'replay.started',
  'replay.stopped',
  'retry-policy.changed',
  'session.all-ended',
  'session.began',
  'session.ended',
  'session.ended-everywhere',
  'sign-in-ticket.made',
  'subscription.changed',
  'subscription.created',
  'subscription.credentials-changed',
  'subscription.deleted',
  'subscription.disabled',
  'subscription.enabled',
  'subscription.held-dropped',
  'subscription.paused',
  'subscription.resumed',
  'subscription.retry-policy-changed',
  'subscription.signing-key-created',
  'subscription.signing-key-ended',
  'subscription.signing-key-rotated',
  'subscription.tested',
];
