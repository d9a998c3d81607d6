import { parseArgs } from 'node:util';
import { oneOf, readCommandLine, wholeNumber } from '../command-line.mjs';
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
 * @property {import('./pace.mjs').Pace} pace
 * @property {string | undefined} json
 * @property {string | undefined} logs
 */

/** @returns {Options} */
export function readOptions() {
  const { seed, rate, only, quick, json, logs } = readCommandLine(usage, () =>
    parseArgs({
      options: {
        seed: { type: 'string' },
        rate: { type: 'string' },
        only: { type: 'string', multiple: true },
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
        logs: { type: 'string' },
        help: { type: 'boolean' },
      },
    }),
  );
  return {
    seed: seed === undefined ? Math.floor(Math.random() * 1e6) : wholeNumber(usage, 'seed', seed, 0, 2 ** 31),
    rate: rate === undefined ? undefined : wholeNumber(usage, 'rate', rate, 1, 20_000),
    scenarios: only?.map((name) => oneOf(usage, 'only', name, scenarios, (each) => each.name)) ?? scenarios,
    pace: quick ? 'quick' : 'full',
    json,
    logs,
  };
}
