import type { InfiniteData, QueryClient } from '@tanstack/react-query';

/**
 * Lists of notifications, each with what it was found by behind it. They stay as they were read: nothing moves under
 * the reader.
 */
export const foundListsKey = ['notifications', 'found'] as const;

/** A longer list begins at its newest again: each of its pages would be asked for. */
const mostPagesReadAgain = 5;

/**
 * After something was done to deliveries: a list that was left for that is read anew when somebody comes back to it.
 */
export function readListsAnew(client: QueryClient): void {
  client.removeQueries({
    queryKey: foundListsKey,
    type: 'inactive',
    predicate: ({ state }) =>
      ((state.data as InfiniteData<unknown> | undefined)?.pages.length ?? 0) > mostPagesReadAgain,
  });
  void client.invalidateQueries({ queryKey: foundListsKey, refetchType: 'none' });
}
