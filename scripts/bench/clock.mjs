const [seconds, nanoseconds] = process.hrtime();
const offsetMs = seconds * 1000 + nanoseconds / 1e6 - performance.now();

/** Milliseconds on the clock that every process of this machine reads alike and that nobody sets (since boot, on Linux). */
export const sharedNowMs = () => offsetMs + performance.now();
