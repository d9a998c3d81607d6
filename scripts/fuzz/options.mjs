import { parseArgs } from 'node:util';
import { oneOf, readCommandLine, wholeNumber } from '../command-line.mjs';

const sides = /** @type {const} */ (['both', 'server', 'receiver']);

const usage = `npm run fuzz -- [options]

  --requests N  requests to the server, and a tenth as many calls to receivers (default 20000)
  --seed S      the same requests again (otherwise new ones, and the seed is printed)
  --only SIDE   server: requests to Heraut; receiver: answers to its calls
  --json FILE   write the findings to FILE as well
  --help`;

/**
 * @typedef {object} Options
 * @property {number} requests
 * @property {number} seed
 * @property {typeof sides[number]} side
 * @property {string | undefined} json
 */

/** @returns {Options} */
export function readOptions() {
  const { requests, seed, only, json } = readCommandLine(usage, () =>
    parseArgs({
      options: {
        requests: { type: 'string', default: '20000' },
        seed: { type: 'string' },
        only: { type: 'string', default: 'both' },
        json: { type: 'string' },
        help: { type: 'boolean' },
      },
    }),
  );
  return {
    requests: wholeNumber(usage, 'requests', requests, 1, 1e9),
    seed: seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber(usage, 'seed', seed, 0, 2 ** 31),
    side: oneOf(usage, 'only', only, sides, (side) => side),
    json,
  };
}
