import * as z from 'zod';
import { nextCursor, pageQuery } from './page-query.js';

/**
 * The parameters of a list in the order of names, which are unique in it.
 * @param things in the list, for the description
 * @param texts of each that are searched, for the description
 */
export const namePageQuery = (things: string, texts: string) =>
  z.strictObject({
    text: z.string().trim().min(1).max(200).optional().describe(`Part of its ${texts}, in any case of letters.`),
    ...pageQuery(things, fromCursor, 'Left out: all of them are in one.'),
  });

export type NamePageQuery = z.output<ReturnType<typeof namePageQuery>>;

export const namePageOutput = {
  count: z.int().describe('Of all that fit, on this page or not.'),
  nextCursor,
};

interface Named<Item> {
  nameOf: (item: Item) => string;
  textsOf: (item: Item) => string[];
  /** Whether it comes after the one of this name in the order of the list, though that may be gone. */
  isAfter: (item: Item, name: string) => boolean;
}

/** @param all in the order of their names */
export function pageByName<Item>(
  all: readonly Item[],
  { text, limit = Infinity, cursor }: NamePageQuery,
  { nameOf, textsOf, isAfter }: Named<Item>,
): { items: Item[]; count: number; nextCursor: string | null } {
  const wanted = text?.toLowerCase();
  const fitting =
    wanted === undefined
      ? all
      : all.filter((item) => textsOf(item).some((each) => each.toLowerCase().includes(wanted)));
  const rest = cursor === undefined ? fitting : fitting.filter((item) => isAfter(item, cursor));
  const items = rest.slice(0, limit);
  return { items, count: fitting.length, nextCursor: rest.length > limit ? toCursor(nameOf(items.at(-1)!)) : null };
}

export const toCursor = (name: string): string => Buffer.from(name).toString('base64url');

/** Postgres stores no name with U+0000, and is asked for what comes after it. */
export function fromCursor(cursor: string): string | undefined {
  const name = Buffer.from(cursor, 'base64url').toString();
  return name !== '' && !name.includes('\0') && toCursor(name) === cursor ? name : undefined;
}
