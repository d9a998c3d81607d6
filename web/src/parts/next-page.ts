import type { UseInfiniteQueryResult } from '@tanstack/react-query';

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
