import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { applicationsQuery, channelsQuery } from './catalogue.ts';

/**
 * Names of channels and applications by their subjects (`channel/<uuid>`); undefined where there is none, or while it
 * is not known.
 */
export function useNames(): (subject: string) => string | undefined {
  const { data: channels } = useQuery(channelsQuery);
  const { data: applications } = useQuery(applicationsQuery);
  const names = useMemo(
    () =>
      new Map<string, string>([
        ...(channels ?? []).map(({ id, name }) => [`channel/${id}`, name] as const),
        ...(applications ?? []).map(({ id, clientId }) => [`application/${id}`, clientId] as const),
      ]),
    [channels, applications],
  );
  return (subject) => names.get(subject);
}
