import { describe, expect, it } from 'vitest';
import { MarkFilter, mayHave } from './mark-filter.js';

/** As Postgres would answer, for one row of `digest`. */
function asked(filter: MarkFilter, mark: string): boolean {
  const positions = [...mayHave(mark).matchAll(/get_bit\(bits, (\d+)\)/g)].map(([, position]) => Number(position));
  return positions.every((position) => (filter.bytes[position >> 3]! >> (position & 7)) & 1);
}

describe('the filter of marks', () => {
  it('never denies a mark that it was given, and seldom affirms another one', () => {
    const filter = new MarkFilter();
    const marks = Array.from({ length: 5000 }, (_, n) => `main-object https://example.org/zaken/${n}`);
    for (const mark of marks) filter.add(mark);
    expect(marks.slice(-1000).every((mark) => asked(filter, mark))).toBe(true);
    const others = Array.from({ length: 1000 }, (_, n) => `main-object https://example.org/zaken/${5000 + n}`);
    expect(others.filter((mark) => asked(filter, mark)).length).toBeLessThan(20);
    expect(filter.isUseless).toBe(false);
  });

  it('knows when it affirms nearly everything', () => {
    const filter = new MarkFilter();
    for (let n = 0; n < 30_000; n++) filter.add(`mark ${n}`);
    expect(filter.isUseless).toBe(true);
  });

  it('sets the same bits in every version: stored filters depend on them', () => {
    expect(mayHave('channel zaken')).toMatchInlineSnapshot(
      `"(bits IS NULL OR get_bit(bits, 12382) = 1 AND get_bit(bits, 28985) = 1 AND get_bit(bits, 45588) = 1 AND get_bit(bits, 53487) = 1 AND get_bit(bits, 6090) = 1 AND get_bit(bits, 22693) = 1 AND get_bit(bits, 39296) = 1)"`,
    );
  });
});
