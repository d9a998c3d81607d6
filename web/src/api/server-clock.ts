/**
 * The time of the server that answered, never ahead of it: the clock of a browser may be anything.
 * @returns milliseconds since 1970
 */
export function clockOf({ headers }: Response): () => number {
  const answeredAt = Date.parse(headers.get('date') ?? '');
  const heardAt = performance.now();
  return () => (Number.isNaN(answeredAt) ? Date.now() : answeredAt + (performance.now() - heardAt));
}
