/**
 * A Bloom filter over the marks of a block of notifications: says for certain that a mark is not among them, or that it
 * may be. With the five thousand marks that a thousand notifications usually have at most, one answer in 500 is a `may
 * be` for nothing.
 */
export class MarkFilter {
  readonly bytes = Buffer.alloc(filterBytes);
  private ones = 0;

  /** A microsecond: a thousand notifications have nine thousand marks, of which many are the same. */
  add(mark: string): void {
    const [first, step] = hashesOf(mark);
    for (let nr = 0; nr < bitsOfMark; nr++) {
      const position = positionAt(first, step, nr);
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
export function mayHave(mark: string): string {
  const [first, step] = hashesOf(mark);
  const bits = Array.from({ length: bitsOfMark }, (_, nr) => `get_bit(bits, ${positionAt(first, step, nr)}) = 1`);
  return `(bits IS NULL OR ${bits.join(' AND ')})`;
}

// Stored filters depend on all that follows: it cannot be changed.

/** In Postgres' numbering: from the lowest bit of the first byte on. */
const positionAt = (first: number, step: number, nr: number): number =>
  ((first + Math.imul(nr, step)) >>> 0) % filterBits;

/** Twice FNV-1a, and the last step of MurmurHash3, which makes all bits depend on the last characters. */
function hashesOf(text: string): [first: number, step: number] {
  let [first, step] = [0x811c9dc5, 0x9747b28c];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    first = Math.imul(first ^ code, 0x01000193);
    step = Math.imul(step ^ code, 0x01000193);
  }
  return [mixed(first), mixed(step) | 1];
}

function mixed(given: number): number {
  let hash = Math.imul(given ^ (given >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
