// A command that starts processes: it ends them whatever happens, and says with its exit status whether all was as it
// should be.

/**
 * @typedef {object} Run
 * @property {(line: string) => void} log to standard error, with the seconds since the start
 * @property {(end: () => Promise<void> | void) => void} onEnd gives a function that ends a thing that was started; those of the
 *   last things are called first
 */

/**
 * Does the work, ends what it started, and ends this process: with 0 when the work says true, with 1 when it says false
 * or fails, with 130 after a signal.
 * @param {(run: Run) => Promise<boolean>} work
 * @returns {Promise<never>}
 */
export async function runCommand(work) {
  const startedAt = performance.now();
  const log = (/** @type {string} */ line) => {
    console.error(`[${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s] ${line}`);
  };
  /** @type {(() => Promise<void> | void)[]} */
  const endings = [];
  const endInTurn = async () => {
    for (let end = endings.pop(); end; end = endings.pop()) {
      try {
        await end();
      } catch (error) {
        log(error instanceof Error ? error.message : String(error));
      }
    }
  };
  /** @type {Promise<void> | undefined} */
  let ending;
  const endAll = () => (ending ??= endInTurn());
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => {
      log(`stopping (${signal}) …`);
      void endAll().finally(() => process.exit(130));
    });
  }
  let status = 1;
  try {
    if (await work({ log, onEnd: (end) => void endings.push(end) })) status = 0;
  } catch (error) {
    // Work that a signal interrupts fails with some error; the reason is the signal.
    if (!ending) log(error instanceof Error ? error.message : String(error));
  }
  await endAll();
  // Without this, Node closes the handles it still has, and has been seen to wait for one of them for ever.
  process.exit(status);
}
