import { QueryClient, type Query, type QueryState } from '@tanstack/react-query';
import { onRefusal } from './client.ts';
import { ApiProblem, isRefusedForNow, isUnanswered, mayPass } from './problem.ts';
import { noteRefusal } from './session.ts';

/** Longest wait between two tries while Heraut does not answer. */
const longestWaitMs = 10_000;
/** An error that is shown is asked about again after this time. */
const againMs = 10_000;
/** A failure of Heraut is often over within a second; one that lasts has to be shown. */
const mostRepeats = 2;

function waitBefore(repeat: number, error: unknown): number {
  const askedMs = error instanceof ApiProblem ? (error.problem.retryAfterSeconds ?? 0) * 1_000 : 0;
  return Math.min(Math.max(500 * 2 ** repeat, askedMs), longestWaitMs);
}

/** For `refetchInterval`. */
export const untilItPasses = ({
  state: { status, error },
}: {
  state: Pick<QueryState, 'status' | 'error'>;
}): number | false => (status === 'error' && error && mayPass(error) ? againMs : false);

/** While nothing answers it is tried again for as long as the page is open; what the API refuses stays refused. */
const retry = (failures: number, error: Error): boolean =>
  isUnanswered(error) || (isRefusedForNow(error) && failures < mostRepeats);
/**
 * Where the page shows an error already, another of Heraut's own tells nothing new: it is asked about again after
 * `againMs`.
 */
const retryWhileShown = (_: number, error: Error): boolean => isUnanswered(error);

export const queries: QueryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry,
      retryDelay: waitBefore,
      // Also where the browser believes to be offline: Heraut may run on this very machine.
      networkMode: 'always',
      // An error of Heraut itself is shown, and asked about again: the page comes back by itself.
      refetchInterval: untilItPasses,
      staleTime: 5_000,
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});

onRefusal((error) => noteRefusal(queries, error));

/** The last error of a query without data, while somebody looks at it. */
const shownErrors = new WeakMap<Query, Error>();

// Asked again, such a query would wait as if for the first time: the error, with the button that has the focus, would
// go and come.
queries.getQueryCache().subscribe((event) => {
  const { query } = event;
  if (event.type === 'observerRemoved' && query.getObserversCount() === 0) shownErrors.delete(query);
  if (event.type !== 'updated') return;
  const error = shownErrors.get(query);
  if (query.state.data !== undefined) shownErrors.delete(query);
  else if (event.action.type === 'error') shownErrors.set(query, event.action.error as Error);
  else if (event.action.type === 'fetch' && error) query.setState({ status: 'error', error });
  // The options are the query's own, and are read for this round after this.
  if (event.action.type === 'fetch') query.options.retry = query.state.status === 'error' ? retryWhileShown : retry;
});
