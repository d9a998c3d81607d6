// Parts of the benchmark, and of the fault suite, that run in processes of their own, and how they are called.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** @typedef {Record<string, (parameter: never) => unknown>} Handlers */

/**
 * @template {Handlers} H
 * @typedef {object} Child
 * @property {number} pid
 * @property {<Name extends keyof H>(name: Name, parameter: Parameters<H[Name]>[0]) => Promise<Awaited<ReturnType<H[Name]>>>} call
 * @property {() => Promise<void>} stop
 */

/**
 * The calls that each file has handlers for.
 * @typedef {{
 *   'receiver.mjs': import('./receiver.mjs').ReceiverHandlers,
 *   'odd-receivers.mjs': import('./odd-receivers.mjs').OddReceiversHandlers,
 *   'load.mjs': import('./load.mjs').LoadHandlers,
 *   '../faults/receiver.mjs': import('../faults/receiver.mjs').CheckingReceiver,
 *   '../faults/publisher.mjs': import('../faults/publisher.mjs').FaultsPublisher,
 * }} Files
 */

/**
 * @template {keyof Files} File
 * @param {File} file
 * @returns {Promise<Child<Files[File]>>}
 */
export async function startChild(file) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), {
    serialization: 'advanced',
    // Room for the requests in flight, so that they are not copied over and over: these two share the machine with
    // Heraut.
    execArgv: ['--max-semi-space-size=32'],
    detached: true, // a Ctrl-C at the terminal is for the benchmark itself
  });
  /** @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void }>} */
  const open = new Map();
  let lastCall = 0;
  child.on(
    'message',
    (/** @type {{ call: number, answer?: unknown, trouble?: string }} */ { call, answer, trouble }) => {
      const waiting = open.get(call);
      open.delete(call);
      if (trouble === undefined) waiting?.resolve(answer);
      else waiting?.reject(new Error(trouble));
    },
  );
  child.once('exit', (status, signal) => {
    for (const { reject } of open.values()) reject(new Error(`${file} ended: ${signal ?? status}.`));
    open.clear();
  });
  await once(child, 'spawn');
  return {
    pid: child.pid ?? 0,
    call: (name, parameter) =>
      new Promise((resolve, reject) => {
        lastCall += 1;
        open.set(lastCall, { resolve, reject });
        // Without a function for it, an error ends this process, and leaves everything that it was to end.
        child.send({ call: lastCall, name, parameter }, (error) => error && reject(error));
      }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/**
 * In the child: answers the calls of the benchmark, and ends with it.
 * @param {Handlers} handlers
 */
export function answerCalls(handlers) {
  process.once('disconnect', () => process.exit(0));
  process.on('message', (/** @type {{ call: number, name: string, parameter: never }} */ { call, name, parameter }) => {
    const answering = (async () => handlers[name]?.(parameter))();
    answering.then(
      (answer) => process.send?.({ call, answer }),
      (/** @type {Error} */ error) => process.send?.({ call, trouble: error.stack ?? error.message }),
    );
  });
}
