import { parseArgs } from 'node:util';

export const scenarios = /** @type {const} */ (['closed-loop', 'open-loop', 'fan-out']);
/** @typedef {typeof scenarios[number]} Scenario */

const guarantees = /** @type {const} */ (['at-least-once', 'at-most-once']);

const usage = `npm run bench -- [options]

  --guarantee G   at-least-once (default) or at-most-once, for every subscription
  --embedded      one process on the embedded default instead of PostgreSQL, RabbitMQ and Redis
  --seconds N     how long each loop publishes (20)
  --count N       at most this many notifications in the closed loop (100000)
  --only NAME     ${scenarios.join(' | ')}; may be repeated
  --json FILE     write the result to FILE as well
  --cpu-prof DIR  write a CPU profile of each process of Heraut there when it stops
  --help`;

/**
 * @typedef {object} Options
 * @property {boolean} embedded
 * @property {typeof guarantees[number]} guarantee
 * @property {number} seconds
 * @property {number} count
 * @property {readonly Scenario[]} only
 * @property {string | undefined} json
 * @property {string | undefined} cpuProf
 */

/**
 * @returns {Options}
 * @throws {Error} that explains the options
 */
export function readOptions() {
  const { values } = parse();
  if (values.help) throw new Error(usage);
  const only = values.only?.map((name) => scenarios.find((scenario) => scenario === name));
  if (only?.includes(undefined)) throw new Error(usage);
  if (only && values.json) throw new Error('--json needs all scenarios, so it does not go with --only.');
  const guarantee = guarantees.find((each) => each === values.guarantee);
  if (!guarantee) throw new Error(usage);
  return {
    embedded: values.embedded,
    guarantee,
    seconds: wholeNumber('seconds', values.seconds, 1, 60),
    count: wholeNumber('count', values.count, 100, 1_000_000),
    only: only?.filter((scenario) => scenario !== undefined) ?? scenarios,
    json: values.json,
    cpuProf: values['cpu-prof'],
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        embedded: { type: 'boolean', default: false },
        guarantee: { type: 'string', default: guarantees[0] },
        seconds: { type: 'string', default: '20' },
        count: { type: 'string', default: '100000' },
        only: { type: 'string', multiple: true },
        json: { type: 'string' },
        'cpu-prof': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (cause) {
    throw new Error(`${/** @type {Error} */ (cause).message}\n\n${usage}`, { cause });
  }
}

/**
 * @param {string} name
 * @param {string} text
 * @param {number} min
 * @param {number} max
 */
function wholeNumber(name, text, min, max) {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name} is a whole number from ${min} to ${max}.`);
}
