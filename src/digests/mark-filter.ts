/**
 * A Bloom filter over the marks of a block of notifications: says for certain that a mark is not among them, or that it may be. With the
 * five thousand marks that a thousand notifications usually have at most, one answer in 500 is a `may be` for nothing.
 */
export class MarkFilter {
  readonly bytes = Buffer.alloc(filterBytes);
  private ones = 0;

  add(mark: string): void {
    for (const position of positionsOf(mark)) {
      const [at, bit] = [position >> 3, 1 << (position & 7)];
      if (this.bytes[at]! & bit) continue;
      this.bytes[at]! |= bit;
      this.ones++;
    }
  }

  /** It would say of nearly every mark that it may be there. */
  get isUseless(): boolean {
    return this.ones > (filterBits * 9) / 10;
  }
}

/** One row a page of Postgres, which has 8192 bytes. */
const filterBytes = 8000;
const filterBits = filterBytes * 8;
const bitsOfMark = 7;

/** SQL: whether the notifications of a row of `digest` may have that mark. */
export const mayHave = (mark: string): string =>
  `(bits IS NULL OR ${positionsOf(mark)
    .map((position) => `get_bit(bits, ${position}) = 1`)
    .join(' AND ')})`;

/** In Postgres' numbering: from the lowest bit of the first byte on. Stored filters depend on these positions: they cannot be changed. */
function positionsOf(mark: string): number[] {
  const [first, step] = [hashOf(mark, 0x811c9dc5), hashOf(mark, 0x9747b28c) | 1];
  return Array.from({ length: bitsOfMark }, (_, nr) => ((first + Math.imul(nr, step)) >>> 0) % filterBits);
}

/** FNV-1a, and the last step of MurmurHash3, which makes all bits depend on the last characters. */
function hashOf(text: string, seed: number): number {
  let hash = seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
