import { killSupervised } from './kills.mjs';
import { inOrder } from './receiver-scenarios.mjs';
import { roundsOf } from './pace.mjs';
import { recovery } from './recovery.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */
/** @typedef {import('./stage.mjs').Stage} Stage */

/** One program whose supervisor runs two processes with every role, as `npm start` does. @type {Scenario[]} */
export const supervised = [
  {
    name: 'supervised-child-killed',
    supervised: true,
    ...recovery,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) await killOne(stage);
    },
  },
  {
    name: 'supervised-children-killed',
    supervised: true,
    ...recovery,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) await killSupervised(stage, (pids) => pids);
    },
  },
  {
    // One process may send what its sibling has accepted, and either may be killed.
    name: 'supervised-order-and-kills',
    supervised: true,
    ...inOrder,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await killOne(stage);
        await stage.whileReceiverIsDown(() => stage.pause(200, 1000));
      }
      await killSupervised(stage, (pids) => pids);
    },
  },
];

/** @param {Stage} stage */
const killOne = (stage) => killSupervised(stage, (pids) => [stage.random.oneOf(pids)]);
