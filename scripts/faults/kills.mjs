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
 * They stand still while it is looked up what they have in flight: what they send, and what others take over from them,
 * is the same before and after the look.
 * @param {Stage} stage
 * @param {Member[]} victims
 */
export async function killTogether(stage, victims) {
  await stage.whileBroken(async () => {
    for (const victim of victims) victim.freeze();
    const held = await stage.heldBy(victims.map(({ pid }) => pid));
    await Promise.all(victims.map((victim) => victim.kill9()));
    await stage.pause(200, 1500);
    await Promise.all(victims.map((victim) => victim.start()));
    await stage.mayComeAgain(held);
  });
  await stage.pause(1000, 2500);
}

/**
 * Processes of a supervisor, which starts them again.
 * @param {Stage} stage
 * @param {(pids: number[]) => number[]} choose of those that listen
 */
export async function killSupervised(stage, choose) {
  const { supervised } = /** @type {Member} */ (stage.cluster.of()[0]);
  if (!supervised) throw new Error('Nothing is supervised here.');
  const victims = choose(await supervised.untilAllListen());
  await stage.whileBroken(async () => {
    for (const pid of victims) supervised.freeze(pid);
    const held = await stage.heldBy(victims);
    for (const pid of victims) supervised.kill9(pid);
    await supervised.untilAllListen(victims);
    await stage.mayComeAgain(held);
  });
  await stage.pause(1000, 2500);
}
