import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { killOneByOne, killTogether } from './kills.mjs';
import { paceOf, roundsOf } from './pace.mjs';
import { recovery } from './recovery.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./cluster.mjs').Role} Role */

const refusedOneIn = 4;
const shiftedClock = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url));

/** @type {Scenario[]} */
export const processes = [
  { name: 'api-killed', learnsAll: true, ...recovery, breakThings: (stage) => killOneByOne(stage, 'api') },
  { name: 'worker-killed', ...recovery, breakThings: (stage) => killOneByOne(stage, 'worker') },
  {
    // Now and then, and each time when it has committed what it hands out and not yet published it: what is due again
    // after a failure.
    name: 'dispatcher-killed',
    learnsAll: true,
    viaProxy: true,
    ...recovery,
    settings: { ...recovery.settings, CIRCUIT_BREAKER_FAILURES: '1000' }, // held deliveries go another way
    breakThings: async (stage) => {
      await stage.receiver.call('refuse', refusedOneIn);
      await killOneByOne(stage, 'dispatcher');
      for (const _ of roundsOf(stage)) {
        const before = stage.proxy.held;
        stage.proxy.whereToCut = (name) => (name === 'hand-out-due' ? 'held' : 'nowhere');
        await stage.until('a hand-out', async () => stage.proxy.held > before);
        stage.proxy.whereToCut = () => 'nowhere';
        await killTogether(stage, stage.cluster.of('dispatcher'));
      }
    },
    afterwards: async (stage) => {
      if (!(await stage.hasRecovered('queue-lost-it'))) stage.wrong.push('nothing was lost between commit and queue');
    },
  },
  {
    name: 'all-killed',
    ...recovery,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) await killTogether(stage, stage.cluster.of());
    },
  },
  {
    name: 'rolling-restart',
    learnsAll: true,
    breakThings: async (stage) => {
      for (const member of stage.cluster.of()) {
        await member.stop();
        await member.start();
      }
    },
  },
  {
    name: 'worker-frozen',
    breakThings: async (stage) => {
      const worker = stage.random.oneOf(stage.cluster.of('worker'));
      await stage.whileBroken(async () => {
        worker.freeze();
        const held = await stage.heldBy([worker.pid]);
        await sleep(paceOf(stage).frozenMs);
        await stage.mayComeAgain(held);
        worker.thaw();
      });
    },
  },
  {
    name: 'worker-clock-off',
    ...recovery,
    prepare: (stage) => shiftClocks(stage, 'worker', [5, -7]),
    breakThings: (stage) => killOneByOne(stage, 'worker'),
  },
  {
    // By hours, and by more than the partitions that are made ahead: the id of a notification must not come from that
    // clock.
    name: 'api-clock-off',
    learnsAll: true,
    ...recovery,
    prepare: (stage) => shiftClocks(stage, 'api', [30 * 24 * 60, -5 * 60]),
    breakThings: (stage) => killOneByOne(stage, 'api'),
  },
];

/**
 * Gives the processes of a role clocks that are wrong, as on machines that are not synchronized.
 * @param {Stage} stage
 * @param {Role} role
 * @param {number[]} minutes by how much; for more processes than these again from the first
 */
function shiftClocks(stage, role, minutes) {
  for (const [nr, member] of stage.cluster.of(role).entries()) {
    member.nodeOptions = ['--import', shiftedClock];
    member.settings.CLOCK_OFFSET_MS = String(Number(minutes[nr % minutes.length]) * 60_000);
  }
}
