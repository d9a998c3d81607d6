import { parseArgs } from 'node:util';
import { oneOf, readCommandLine, refuse, wholeNumber } from '../command-line.mjs';
import { kinds } from './odd-endpoints.mjs';

const scenarios = /** @type {const} */ (['closed-loop', 'open-loop', 'fan-out', 'isolation']);
/** @typedef {typeof scenarios[number]} Scenario */

const guarantees = /** @type {const} */ (['at-least-once', 'at-most-once']);

const usage = `npm run bench -- [options]

  --guarantee G   at-least-once (default) or at-most-once, for every subscription
  --embedded      one process on the embedded default instead of PostgreSQL, RabbitMQ and Redis
  --processes N   every role in each of N processes, or of as many as there are cores (auto, the default, as \`npm start\` does on servers)
  --apart         one process for the API and one for the rest, in place of that
  --seconds N     how long each loop publishes (20)
  --count N       at most this many notifications in the closed loop (100000)
  --only NAME     ${scenarios.join(' | ')}; may be repeated
  --beside KIND   of the isolation only this: ${kinds.join(' | ')};
                  may be repeated
  --soak MINUTES  instead of all that: a steady open loop for so long, with memory and latency of every minute
  --json FILE     write the result to FILE as well
  --cpu-prof DIR  write a CPU profile of each process of Heraut there when it stops
  --help`;

/**
 * @typedef {object} Options
 * @property {boolean} embedded
 * @property {string | undefined} processes undefined: embedded, or apart
 * @property {typeof guarantees[number]} guarantee
 * @property {number} seconds
 * @property {number} count
 * @property {readonly Scenario[]} only
 * @property {readonly import('./odd-endpoints.mjs').Kind[]} beside
 * @property {number | undefined} soak minutes
 * @property {string | undefined} json
 * @property {string | undefined} cpuProf
 */

/** @returns {Options} */
export function readOptions() {
  const values = readCommandLine(usage, () =>
    parseArgs({
      options: {
        embedded: { type: 'boolean', default: false },
        processes: { type: 'string' },
        apart: { type: 'boolean', default: false },
        guarantee: { type: 'string', default: guarantees[0] },
        seconds: { type: 'string', default: '20' },
        count: { type: 'string', default: '100000' },
        only: { type: 'string', multiple: true },
        beside: { type: 'string', multiple: true },
        soak: { type: 'string' },
        json: { type: 'string' },
        'cpu-prof': { type: 'string' },
        help: { type: 'boolean' },
      },
    }),
  );
  if (values.only && values.soak) refuse(usage, '--soak measures nothing else, so it does not go with --only.');
  if (values.embedded && (values.processes || values.apart))
    refuse(usage, '--embedded is one process, so it goes with neither --processes nor --apart.');
  if (values.processes && values.apart) refuse(usage, '--apart is two processes, so it does not go with --processes.');
  return {
    embedded: values.embedded,
    processes: values.embedded || values.apart ? undefined : readProcesses(values.processes),
    guarantee: oneOf(usage, 'guarantee', values.guarantee, guarantees, String),
    seconds: wholeNumber(usage, 'seconds', values.seconds, 1, 60),
    count: wholeNumber(usage, 'count', values.count, 100, 1_000_000),
    only: values.only?.map((name) => oneOf(usage, 'only', name, scenarios, String)) ?? scenarios,
    beside: values.beside?.map((name) => oneOf(usage, 'beside', name, kinds, String)) ?? kinds,
    soak: values.soak === undefined ? undefined : wholeNumber(usage, 'soak', values.soak, 1, 10_000),
    json: values.json,
    cpuProf: values['cpu-prof'],
  };
}

/** @param {string} [value] */
function readProcesses(value = 'auto') {
  return value === 'auto' ? value : String(wholeNumber(usage, 'processes', value, 1, 256));
}
