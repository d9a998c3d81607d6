import { LongWork } from '../infra/long-work.js';

/** Presented in one go. */
const together = 20;

/** A list that has no pages, as JSON: what stands before its items, these, and what stands behind. */
export interface LongList<Item> {
  before: string;
  items: readonly Item[];
  present: (item: Item) => object;
  after: string;
}

/** Or any JSON, in parts. */
export type Long<Item> = LongList<Item> | Iterable<string>;

/** Leaves the event loop to others between its parts. */
export async function bytesOf<Item>(long: Long<Item>): Promise<Buffer> {
  const work = new LongWork();
  const parts: Buffer[] = [];
  for (const part of Symbol.iterator in long ? long : partsOf(long)) {
    parts.push(Buffer.from(part));
    await work.yieldIfDue();
  }
  return Buffer.concat(parts);
}

function* partsOf<Item>({ before, items, present, after }: LongList<Item>): Generator<string> {
  yield before;
  for (let from = 0; from < items.length; from += together) {
    const some = items.slice(from, from + together).map((item) => JSON.stringify(present(item)));
    yield (from === 0 ? '' : ',') + some.join(',');
  }
  yield after;
}
