import { parseArgs } from 'node:util';
import { scenarios } from './scenarios.mjs';

const usage = `npm run faults -- [options]

  --seed N      the same choices of victims and times again (otherwise new ones, and the seed is printed)
  --rate N      notifications a second (otherwise half of what this machine delivers at most, measured first)
  --only NAME   one scenario; may be repeated
  --quick       fewer rounds, shorter outages
  --json FILE   write the result to FILE as well
  --logs DIR    keep the logs of every process there
  --help

  scenarios: ${scenarios.map(({ name }) => name).join(', ')}`;

/**
 * @typedef {object} Options
 * @property {number} seed
 * @property {number | undefined} rate
 * @property {import('./stage.mjs').Scenario[]} scenarios
 * @property {import('./scenarios.mjs').Pace} pace
 * @property {string | undefined} json
 * @property {string | undefined} logs
 */

/**
 * @returns {Options}
 * @throws {Error} that explains the options
 */
export function readOptions() {
  const { values } = parse();
  if (values.help) throw new Error(usage);
  const chosen = values.only?.map((name) => scenarios.find((scenario) => scenario.name === name)) ?? scenarios;
  if (chosen.includes(undefined)) throw new Error(usage);
  return {
    seed: values.seed === undefined ? Math.floor(Math.random() * 1e6) : wholeNumber('seed', values.seed, 0, 2 ** 31),
    rate: values.rate === undefined ? undefined : wholeNumber('rate', values.rate, 1, 20_000),
    scenarios: chosen.filter((scenario) => scenario !== undefined),
    pace: values.quick ? 'quick' : 'full',
    json: values.json,
    logs: values.logs,
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        seed: { type: 'string' },
        rate: { type: 'string' },
        only: { type: 'string', multiple: true },
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
        logs: { type: 'string' },
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
