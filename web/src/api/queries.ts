import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { isFault, isPassing } from './problem.ts';
import { noteRefusal } from './session.ts';

/** Longest wait between two tries while Heraut does not answer. */
const longestWaitMs = 10_000;
const faultAgainMs = 10_000;

export const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error) => noteRefusal(queries, error) }),
  mutationCache: new MutationCache({ onError: (error) => noteRefusal(queries, error) }),
  defaultOptions: {
    queries: {
      // What passes is tried again for as long as the page is open; what the API refuses stays refused.
      retry: (_failures, error) => isPassing(error),
      retryDelay: (failures) => Math.min(500 * 2 ** failures, longestWaitMs),
      // Also where the browser believes to be offline: Heraut may run on this very machine.
      networkMode: 'always',
      // An error of Heraut itself is shown, and asked about again: the page comes back by itself.
      refetchInterval: ({ state: { status, error } }) => (status === 'error' && isFault(error) ? faultAgainMs : false),
      staleTime: 5_000,
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});
