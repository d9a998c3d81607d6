import { useQuery, useQueryClient } from '@tanstack/react-query';
import { callConsole } from '../api/client.ts';
import { isProblem } from '../api/problem.ts';

export const userRoles = ['viewer', 'operator', 'administrator'] as const;
export type UserRole = (typeof userRoles)[number];

export interface Session {
  user: { name: string; role: UserRole; via: string };
  expiresAt: string;
  version: string;
}

const sessionKey = ['session'];

/** The session of this browser; null: nobody is signed in. */
export function useSession() {
  return useQuery<Session | null>({
    queryKey: sessionKey,
    queryFn: async () => {
      try {
        return (await callConsole('GET', 'session')) as Session;
      } catch (error) {
        if (isProblem(error) && error.status === 401) return null;
        throw error;
      }
    },
    staleTime: 60_000,
    refetchOnWindowFocus: true,
  });
}

export function useForgetSession(): () => void {
  const client = useQueryClient();
  return () => client.setQueryData(sessionKey, null);
}

/** Whether the user may do what needs that role. The API decides; this only spares a click that it would refuse. */
export function useMay(role: UserRole): boolean {
  const { data } = useSession();
  return data ? userRoles.indexOf(data.user.role) >= userRoles.indexOf(role) : false;
}
