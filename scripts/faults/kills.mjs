import { roundsOf } from './pace.mjs';

/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./cluster.mjs').Member} Member */
/** @typedef {import('./cluster.mjs').Role} Role */

/**
 * @param {Stage} stage
 * @param {Role} role
 */
export async function killOneByOne(stage, role) {
  for (const _ of roundsOf(stage)) await killTogether(stage, [stage.random.oneOf(stage.cluster.of(role))]);
}

/** Every role as often as there are rounds. @param {Stage} stage */
export function inTurn(stage) {
  return roundsOf(stage).flatMap(() => /** @type {const} */ (['worker', 'dispatcher', 'api']));
}

/**
 * @param {Stage} stage
 * @param {Member[]} victims
 */
export async function killTogether(stage, victims) {
  await stage.whileBroken(async () => {
    await Promise.all(victims.map((victim) => victim.kill9()));
    if (victims.some(({ roles }) => roles.includes('worker'))) await stage.noteLocked();
    await stage.pause(200, 1500);
    await Promise.all(victims.map((victim) => victim.start()));
  });
  await stage.pause(1000, 2500);
}
