import { queryOptions, useQuery } from '@tanstack/react-query';
import type { components } from '../../generated/admin-api.d.ts';
import { answerOf, api } from '../api/client.ts';
import { together, untilNextStep } from './together.ts';
import type { Subject } from './volume-links.ts';

export type Total = Omit<components['schemas']['ActivityTotals']['totals'][number], 'lastAt'> & { lastAt?: string };
type Counts = Omit<Total, 'id' | 'lastAt'>;
export type Span = '1h' | '24h' | '7d';
export const spans: readonly Span[] = ['1h', '24h', '7d'];

/** Counts are added up every ten seconds; nothing changes more often. */
const refetchInterval = 10_000;
/** Of totals of many, and of what is counted hour by hour. */
const seldomMs = 60_000;
const pageLength = 1_000;
const mostPages = 20;

const nothing: Counts = { accepted: 0, duplicates: 0, delivered: 0, failedAttempts: 0, gaveUp: 0 };

interface Totals {
  /** undefined: it is not known. */
  of: (id: string) => Total | undefined;
  /** Events from then on are counted. */
  since: string | undefined;
  /** Why nothing newer is known. */
  error: Error | null;
  again: () => void;
}

/** Counts of each channel or application in the last 24 hours. Of subscriptions there may be too many. */
export function useTotals(kind: 'channel' | 'application'): Totals {
  const { data, error, refetch } = useQuery({
    queryKey: ['activity-totals', kind],
    queryFn: async ({ signal }) => {
      const totals = new Map<string, Total>();
      let since: string | undefined;
      let cursor: string | null | undefined;
      for (let page = 0; page < mostPages && cursor !== null; page++) {
        const query = { of: kind, span: '24h' as const, ...(cursor && { cursor }) };
        const answer = await answerOf(api.GET('/admin/v1/activity/totals', { params: { query }, signal }));
        for (const total of answer.totals) totals.set(total.id, total);
        since ??= answer.since;
        cursor = answer.nextCursor;
      }
      return { totals, since, isWhole: cursor === null };
    },
    refetchInterval: ({ state: { data } }) => ((data?.totals.size ?? 0) > pageLength ? seldomMs : refetchInterval),
    staleTime: refetchInterval,
  });
  return {
    of: (id) => data?.totals.get(id) ?? (data?.isWhole ? { id, ...nothing } : undefined),
    since: data?.since,
    error,
    again: () => void refetch(),
  };
}

/** All of them together. */
export const sumOf = (buckets: readonly Counts[]): Counts =>
  buckets.reduce(
    (sum, each) => ({
      accepted: sum.accepted + each.accepted,
      duplicates: sum.duplicates + each.duplicates,
      delivered: sum.delivered + each.delivered,
      failedAttempts: sum.failedAttempts + each.failedAttempts,
      gaveUp: sum.gaveUp + each.gaveUp,
    }),
    nothing,
  );

const loadOfSubscription = together(async (asked) => {
  const query = { of: 'subscription' as const, span: '24h' as const, ids: asked.join(',') };
  const { totals } = await answerOf(api.GET('/admin/v1/activity/totals', { params: { query } }));
  return new Map<string, Counts>(totals.map((each) => [each.id, each]));
});

export const subscriptionTotalsKey = ['subscription-totals'] as const;

/** Counts of one of the subscriptions of a list in the last 24 hours: rows on the screen ask together. */
export const subscriptionTotalsQuery = (id: string) =>
  queryOptions({
    queryKey: [...subscriptionTotalsKey, id],
    queryFn: async () => (await loadOfSubscription(id)) ?? nothing,
    refetchInterval: () => untilNextStep(refetchInterval),
    staleTime: refetchInterval,
  });

/** Minute by minute or hour by hour. */
export const useActivity = (subject: Subject, span: Span) =>
  useQuery({
    queryKey: ['activity', subject, span],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/admin/v1/activity', { params: { query: { ...subject, span } }, signal })),
    refetchInterval: span === '1h' ? refetchInterval : seldomMs,
  });
