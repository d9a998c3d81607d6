/**
 * Milliseconds on the clock that every process of this machine reads alike and that cannot be set: since boot, on
 * Linux. Not `performance.now()`, which counts from another time in each process.
 */
export function sharedNowMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
