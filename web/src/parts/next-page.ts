import type { QueryState, UseInfiniteQueryResult } from '@tanstack/react-query';
import { untilItPasses } from '../api/queries.ts';

type Pages = Pick<
  UseInfiniteQueryResult,
  'hasNextPage' | 'isFetching' | 'isError' | 'isFetchNextPageError' | 'fetchNextPage' | 'refetch'
>;

/**
 * For the end of a list. A page that failed is not asked for again by being at the end: that would ask without a pause.
 */
export const readOn =
  ({ hasNextPage, isFetching, isError, fetchNextPage }: Pages) =>
  (): void => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  };

/** For the button of an error: the pages that were read stay. */
export const tryAgain =
  ({ isFetchNextPageError, fetchNextPage, refetch }: Pages) =>
  (): void =>
    void (isFetchNextPageError ? fetchNextPage() : refetch());

/**
 * With the time at which it was read, by the browser's clock: pages of one list are read one after the other, as
 * somebody reads on.
 */
export const readNow = async <T extends object>(page: Promise<T>): Promise<T & { readAt: number }> => ({
  ...(await page),
  readAt: Date.now(),
});

const everyMs = 10_000;

interface Page {
  nextCursor: string | null;
}

/**
 * For `refetchInterval` of a list, the newest first: more than its first page would move under the reader, and be asked
 * for page by page. Nor is a search repeated that has found nothing yet: somebody is about to have it go on, and it
 * reads the most.
 */
export const whileOnePage =
  <P extends Page>(rowsOf: (page: P) => readonly unknown[]) =>
  (query: { state: Pick<QueryState<{ pages: P[] }>, 'data' | 'status' | 'error'> }): number | false => {
    const [first, ...others] = query.state.data?.pages ?? [];
    const isSearching = first && first.nextCursor !== null && rowsOf(first).length === 0;
    return others.length > 0 || isSearching ? untilItPasses(query) : everyMs;
  };
