/** @typedef {{ p50: number, p95: number, p99: number }} Percentiles */

/**
 * @param {Float64Array} values
 * @returns {Percentiles}
 */
export function percentiles(values) {
  const sorted = values.toSorted();
  const at = (/** @type {number} */ share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** @param {number[]} [values] */
export const median = (values = []) => percentiles(Float64Array.from(values)).p50;
