import type { SubscribedChannel } from './data.ts';

/** An entry while it is typed: in an order, with what is not complete yet. */
export interface EntryDraft {
  /** Of this entry on the screen. */
  key: string;
  channel: string;
  filters: { key: string; name: string; value: string }[];
}

/** The same keys for the same channels: it is called whenever the page reads them again. */
export const toDrafts = (channels: readonly SubscribedChannel[]): EntryDraft[] =>
  channels.map(({ channel, filters }, index) => ({
    key: `entry-${index}`,
    channel,
    filters: Object.entries(filters).map(([name, value], at) => ({ key: `filter-${at}`, name, value })),
  }));

export const toChannels = (drafts: readonly EntryDraft[]): SubscribedChannel[] =>
  drafts.map(({ channel, filters }) => ({
    channel,
    filters: Object.fromEntries(filters.map(({ name, value }) => [name.trim(), value.trim()])),
  }));

export const isComplete = (drafts: readonly EntryDraft[]): boolean =>
  drafts.every(
    ({ channel, filters }) =>
      channel !== '' &&
      filters.every(({ name, value }) => name.trim() !== '' && value.trim() !== '') &&
      new Set(filters.map(({ name }) => name.trim())).size === filters.length,
  );

let made = 0;
/** Of something new on the screen. Not `crypto.randomUUID`, which browsers only have on a page that came over TLS. */
export const nextKey = (): string => `new-${++made}`;
