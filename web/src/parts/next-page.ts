import type { QueryState, UseInfiniteQueryResult } from '@tanstack/react-query';
import { untilItPasses } from '../api/queries.ts';

type Pages = Pick<
  UseInfiniteQueryResult,
  'hasNextPage' | 'isFetching' | 'isError' | 'isFetchNextPageError' | 'fetchNextPage' | 'refetch'
>;

/** For the end of a list. A page that failed is not asked for again by being at the end: that would ask without a pause. */
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

const everyMs = 10_000;

interface Listed {
  pages: readonly unknown[];
}

/** For `refetchInterval` of a list, the newest first: more than its first page would move under the reader, and be asked for page by page. */
export const whileOnePage = (query: { state: Pick<QueryState<Listed>, 'data' | 'status' | 'error'> }): number | false =>
  (query.state.data?.pages.length ?? 0) > 1 ? untilItPasses(query) : everyMs;
