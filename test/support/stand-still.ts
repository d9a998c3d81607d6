/** This process does nothing, as one that is stopped, or whose machine is suspended; what comes lies in its sockets. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
