import type { AdminClient, QueryValue } from './admin-client.js';
import type { Session } from './session.js';

/** As the server has it. */
const largestPage = 500;

interface List {
  path: string;
  /** Of the things in its pages, and in what is shown to machines. */
  key: string;
  query: Readonly<Record<string, QueryValue>>;
  /** At most so many are shown. */
  limit: number;
}

interface End {
  /** Where the list goes on; null at its end. */
  nextCursor: string | null;
  /** Where the search was bounded: it looked back to this time. */
  searchedTo?: string;
}

interface Page<Item> extends End {
  items: Item[];
}

type Answer<Item> = Record<string, Item[]> & { nextCursor: string | null; searchedTo?: string | null };

/** Shows the first things of a list, and how it goes on. */
export async function showList<Item>(
  session: Session,
  list: List,
  draw: (items: readonly Item[]) => string,
): Promise<void> {
  const { items, ...end } = await readPages<Item>(session.client, list);
  session.show({ [list.key]: items, ...end }, () => draw(items));
  noteEnd(session, end);
}

/** The line below a list that goes on. */
export function noteEnd(session: Session, { nextCursor, searchedTo }: End): void {
  if (nextCursor === null) return;
  const far = searchedTo === undefined ? 'There are more' : `Looked back to ${searchedTo}, and no further`;
  session.note(`${far}; --cursor ${nextCursor} goes on.`);
}

/**
 * From as many pages as it takes. Pages may be short, or empty, although the list goes on; where one says how far it
 * has looked, it is the last, as to look further is for the caller to decide.
 */
async function readPages<Item>(client: AdminClient, { path, key, query, limit }: List): Promise<Page<Item>> {
  const items: Item[] = [];
  let cursor = query.cursor as string | null | undefined;
  for (;;) {
    const wanted = Math.min(limit - items.length, largestPage);
    const page = await client.request<Answer<Item>>('GET', path, {
      query: { ...query, limit: wanted, cursor: cursor ?? undefined },
    });
    items.push(...page[key]!);
    const { nextCursor, searchedTo } = page;
    cursor = nextCursor;
    const isBounded = searchedTo !== undefined && searchedTo !== null;
    if (cursor === null || items.length >= limit || isBounded)
      return { items, nextCursor, ...(isBounded ? { searchedTo } : {}) };
  }
}
