import { setTimeout as sleep } from 'node:timers/promises';
import { sharedNowMs } from '../bench/clock.mjs';
import { paceOf } from './pace.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */

/** Deliveries queued a second time although the queue had them all along: more than this would be a storm. */
const superfluousShare = 0.01;
/**
 * After the return of an empty RabbitMQ, the time in which everything that was in it must arrive; longer on a machine
 * that takes longer for as many deliveries when nothing is wrong, which is told by the rate of the run: half of what it
 * delivers at most.
 */
const drainedWithin = { leastMs: 15_000, noticedMs: 5000 };

/** @type {Scenario[]} */
export const backlogs = [
  {
    name: 'backlog-without-workers',
    quietWithinMs: 300_000,
    play: async (stage) => {
      const workers = stage.cluster.of('worker');
      const notifications = paceOf(stage).standing; // each for two subscriptions
      await stage.whileBroken(async () => {
        await Promise.all(workers.map((worker) => worker.stop()));
        await stage.ledger.watchHandOuts();
        const stoppedMs = sharedNowMs();
        await stage.publisher.call('atOnce', { count: notifications, publishers: 128, seconds: 600 });
        // Long enough for leases to end, many times over at the full pace.
        await sleep(Math.max(0, stoppedMs + paceOf(stage).standstillMs - sharedNowMs()));
        await Promise.all(workers.map((worker) => worker.start()));
      });
      await stage.untilQuiet(300_000);
      const { waiting = 0, held = 0 } = Object.fromEntries(await stage.ledger.handOuts());
      stage.environment.log(`queued again: ${waiting} that the queue had, ${held} that a receiver had no room for`);
      const allowed = notifications * 2 * superfluousShare;
      if (waiting > allowed) {
        stage.wrong.push(`${waiting} deliveries were queued a second time, at most ${allowed} are allowed`);
      }
    },
  },
  {
    name: 'rabbitmq-wiped-with-backlog',
    needsServers: true,
    play: async (stage) => {
      const workers = stage.cluster.of('worker');
      const notifications = paceOf(stage).wiped; // each for two subscriptions
      await stage.whileBroken(async () => {
        await Promise.all(workers.map((worker) => worker.stop()));
        await stage.publisher.call('atOnce', { count: notifications, publishers: 128, seconds: 600 });
        const wiping = stage.servers.rabbitmq.wipe();
        await Promise.all([wiping, ...workers.map((worker) => worker.start())]);
      });
      const returnedMs = stage.faults.at(-1)?.toMs ?? 0;
      await stage.untilQuiet(120_000);
      const { lastMs } = await stage.receiver.call('progress', undefined);
      const tookMs = lastMs - returnedMs;
      const machineMs = (notifications * 1000) / (stage.environment.ratePerSecond * 2);
      const allowedMs = Math.max(drainedWithin.leastMs, drainedWithin.noticedMs + machineMs);
      if (tookMs > allowedMs) {
        const allowed = `${Math.round(allowedMs)} ms are allowed`;
        stage.wrong.push(`the last delivery came ${Math.round(tookMs)} ms after the return of RabbitMQ, ${allowed}`);
      }
    },
  },
];
