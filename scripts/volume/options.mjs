import { parseArgs } from 'node:util';
import { oneOf, readCommandLine, refuse, wholeNumber } from '../command-line.mjs';
import { volumeCases } from './cases.mjs';

const usage = `npm run volume -- [options]

  --only NAME   ${volumeCases.map(({ name }) => name).join(' | ')}; may be repeated
  --rows SHARE  of the rows that each case has, above 0 and at most 1 (1); less is for trying out
  --seconds N   how long each closed loop publishes (10)
  --pairs N     how often each case is measured, right after the empty ledger (3)
  --json FILE   write the result to FILE as well
  --help`;

/**
 * @typedef {object} Options
 * @property {readonly import('./cases.mjs').VolumeCase[]} cases
 * @property {number} share of the rows at full scale
 * @property {number} seconds
 * @property {number} pairs
 * @property {string | undefined} json
 */

/** @returns {Options} */
export function readOptions() {
  const values = readCommandLine(usage, () =>
    parseArgs({
      options: {
        only: { type: 'string', multiple: true },
        rows: { type: 'string', default: '1' },
        seconds: { type: 'string', default: '10' },
        pairs: { type: 'string', default: '3' },
        json: { type: 'string' },
        help: { type: 'boolean' },
      },
    }),
  );
  const share = Number(values.rows);
  if (!(share > 0 && share <= 1)) refuse(usage, '--rows is a number above 0 and at most 1.');
  return {
    cases: values.only?.map((name) => oneOf(usage, 'only', name, volumeCases, (each) => each.name)) ?? volumeCases,
    share,
    seconds: wholeNumber(usage, 'seconds', values.seconds, 1, 60),
    pairs: wholeNumber(usage, 'pairs', values.pairs, 1, 10),
    json: values.json,
  };
}
