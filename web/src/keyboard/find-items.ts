export const itemGroups = ['found', 'pages', 'actions', 'channels', 'subscriptions'] as const;
export type ItemGroup = (typeof itemGroups)[number];

export interface Item {
  id: string;
  group: ItemGroup;
  label: string;
  /** Behind the label, smaller. */
  hint?: string;
  /** More to be found by; not shown. */
  words?: string;
  /** Where it leads, or what it does. */
  run: () => void;
}

/** Of one group; a user who wants another types more of its name. */
const mostOfGroup: Record<ItemGroup, number> = { found: 8, pages: 20, actions: 20, channels: 6, subscriptions: 6 };

/** These are what the server has found for it. */
const foundByServer: ReadonlySet<ItemGroup> = new Set(['found', 'subscriptions']);

const plain = (text: string): string =>
  text
    .normalize('NFD')
    .replaceAll(/\p{Diacritic}/gu, '')
    .toLowerCase();

/**
 * The items that have every word of what is sought, those first whose label begins with it. Nothing sought: pages and
 * actions, as the catalogue may be long.
 */
export function findItems(items: readonly Item[], sought: string): Item[] {
  const words = plain(sought).split(/\s+/).filter(Boolean);
  const found = items.flatMap((item) => {
    if (words.length === 0) return item.group === 'pages' || item.group === 'actions' ? [{ item, rank: 1 }] : [];
    const label = plain(item.label);
    const all = `${label} ${plain(item.hint ?? '')} ${plain(item.words ?? '')}`;
    if (!foundByServer.has(item.group) && !words.every((word) => all.includes(word))) return [];
    return [{ item, rank: label.startsWith(words[0]!) ? 0 : 1 }];
  });
  return itemGroups.flatMap((group) =>
    found
      .filter(({ item }) => item.group === group)
      .toSorted((one, other) => one.rank - other.rank)
      .slice(0, mostOfGroup[group])
      .map(({ item }) => item),
  );
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;

/** The id in what was pasted: alone, in an address, or in a line of the log. */
export const idIn = (typed: string): string | undefined => uuid.exec(typed)?.[0].toLowerCase();
