/** A value of one item of a batch; `nr` is the subscript of the item, from 1, as Postgres counts. */
export interface Numbered<T> {
  nr: number;
  value: T;
}

/** All that `valueOf` finds in the batch, each with the number of its item. */
export function numbered<Item, T>(batch: readonly Item[], valueOf: (item: Item) => T | null): Numbered<T>[] {
  const found: Numbered<T>[] = [];
  batch.forEach((item, index) => {
    const value = valueOf(item);
    if (value !== null) found.push({ nr: index + 1, value });
  });
  return found;
}
