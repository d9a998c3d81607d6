import type { components } from '../../generated/admin-api.d.ts';
import type { UrlState } from './url-state.ts';

/** That are counted minute by minute, and hour by hour. */
export type Count = Exclude<keyof components['schemas']['Activity']['buckets'][number], 'at'>;

/** Of which it is counted: `id` is a channel's name, a subscription's id, or a client id. */
export type Subject = { of: 'all' } | { of: 'channel' | 'subscription' | 'application'; id: string };

const names = { channel: 'channel', subscription: 'subscription', application: 'publisher' } as const;

/**
 * The list of what was counted, where there is one: of failed calls and of duplicates there is none.
 * @param from since when; a notification whose deliveries ended later than that may have been accepted before
 */
export function leadsTo(
  subject: Subject,
  count: Count,
  from: string | undefined,
): { to: '/notifications' | '/dead-letters'; search: UrlState } | undefined {
  const narrowing = subject.of === 'all' ? {} : { [names[subject.of]]: subject.id };
  switch (count) {
    case 'accepted':
      return { to: '/notifications', search: { ...narrowing, acceptedFrom: from } };
    case 'delivered':
      return { to: '/notifications', search: { ...narrowing, state: 'delivered' } };
    case 'gaveUp':
      return { to: '/dead-letters', search: narrowing };
    default:
      return undefined;
  }
}
