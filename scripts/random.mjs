/**
 * Numbers that look random and are the same for the same seed and name: a scenario run alone makes the same choices as
 * among the others. Names are hashed by FNV-1a, numbers made by mulberry32; both are small and good enough to choose
 * victims.
 */
export class Random {
  #state;

  /**
   * @param {number} seed
   * @param {string} name
   */
  constructor(seed, name) {
    let hash = 0x811c9dc5 ^ seed;
    for (const character of name) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
    this.#state = hash >>> 0;
  }

  /** From 0 to just below 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * @param {number} min
   * @param {number} max not included
   */
  between(min, max) {
    return min + this.next() * (max - min);
  }

  /**
   * @template T
   * @param {readonly T[]} choices at least one
   * @returns {T}
   */
  oneOf(choices) {
    return /** @type {T} */ (choices[Math.floor(this.next() * choices.length)]);
  }
}
