import { useQuery } from '@tanstack/react-query';
import {
  isOverKey,
  readSession,
  sessionKey,
  userRoles,
  waysInKey,
  type Session,
  type UserRole,
  type WaysIn,
} from '../api/session.ts';

const lookEveryMs = 60_000;

/**
 * The session of this browser; null: nobody is signed in.
 * @param everyMs how often it is looked at
 */
export function useSession(everyMs = lookEveryMs) {
  return useQuery<Session | null>({
    queryKey: sessionKey,
    queryFn: ({ client }) => readSession(client),
    staleTime: 30_000,
    refetchInterval: everyMs,
    refetchOnWindowFocus: 'always',
  });
}

/** Whether the session has ended while this page was open. */
export const useIsOver = (): boolean => useQuery<boolean>({ queryKey: isOverKey, enabled: false }).data ?? false;

/** How to sign in; undefined: not known yet. */
export const useWaysIn = (): WaysIn | undefined => useQuery<WaysIn>({ queryKey: waysInKey, enabled: false }).data;

/** Whether the user may do what needs that role. The API decides; this only spares a click that it would refuse. */
export function useMay(role: UserRole): boolean {
  const { data } = useSession();
  return data ? userRoles.indexOf(data.user.role) >= userRoles.indexOf(role) : false;
}
