import type { AdminClient, QueryValue } from './admin-client.js';

/** As the server has it. */
const largestPage = 500;

export interface Page<Item> {
  items: Item[];
  /** Where the list goes on; null at its end. */
  nextCursor: string | null;
  /** Where the search was bounded: it looked back to this time. */
  searchedTo?: string;
}

/**
 * The first `limit` things of a list, from as many pages as that takes. Pages may be short, or empty, although the list goes on; where
 * one says how far it has looked, it is the last, as to look further is for the caller to decide.
 * @param key of the list in its pages
 */
export async function readPages<Item>(
  client: AdminClient,
  path: string,
  key: string,
  query: Readonly<Record<string, QueryValue>>,
  limit: number,
): Promise<Page<Item>> {
  const items: Item[] = [];
  let cursor = query.cursor as string | null | undefined;
  for (;;) {
    const wanted = Math.min(limit - items.length, largestPage);
    const page = (await client.request('GET', path, {
      query: { ...query, limit: wanted, cursor: cursor ?? undefined },
    })) as { nextCursor: string | null; searchedTo?: string | null } & Record<string, Item[]>;
    items.push(...page[key]!);
    const { nextCursor, searchedTo } = page;
    cursor = nextCursor;
    const isBounded = searchedTo !== undefined && searchedTo !== null;
    if (cursor === null || items.length >= limit || isBounded)
      return { items, nextCursor, ...(isBounded ? { searchedTo } : {}) };
  }
}

/** The line below a list that goes on. */
export function howToGoOn({ nextCursor, searchedTo }: Page<unknown>): string | undefined {
  if (nextCursor === null) return undefined;
  const far = searchedTo === undefined ? 'There are more' : `Looked back to ${searchedTo}, and no further`;
  return `${far}; --cursor ${nextCursor} goes on.`;
}
