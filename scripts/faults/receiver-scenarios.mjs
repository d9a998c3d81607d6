import { setTimeout as sleep } from 'node:timers/promises';
import { sharedNowMs } from '../bench/clock.mjs';
import { inTurn, killTogether } from './kills.mjs';
import { paceOf, roundsOf } from './pace.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */
/** @typedef {import('./stage.mjs').Stage} Stage */

/** Of what is published for a parked endpoint, at most this share may be tried as probes. */
const probesShare = 0.1;
/** A receiver that flaps is down for so long, and up for so long. */
const flapMs = 5000;
const orderedObjects = 100;

/** Notifications about so many objects, whose order the subscriptions ask for. @satisfies {Partial<Scenario>} */
export const inOrder = { quietWithinMs: 300_000, objects: orderedObjects, mostPerSecond: orderedObjects };

/** @type {Scenario[]} */
export const receivers = [
  {
    name: 'receiver-dies-answering',
    answerAfterMs: 100,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.whileReceiverIsDown(() => stage.pause(200, 1000));
        await stage.pause(1000, 2000);
      }
    },
  },
  {
    name: 'receivers-out',
    quietWithinMs: 300_000,
    play: async (stage) => {
      // Notifications published meanwhile must all be delivered in the end.
      await stage.publisher.call('steadily', Math.min(100, stage.environment.ratePerSecond));
      await stage.pause(1500, 2500);
      await stage.whileReceiverIsDown(() => sleep(paceOf(stage).outageMs));
    },
  },
  {
    name: 'receiver-flaps',
    quietWithinMs: 300_000,
    mostPerSecond: 200,
    breakThings: async (stage) => {
      for (const endsMs = sharedNowMs() + paceOf(stage).flappingMs; sharedNowMs() < endsMs;) {
        await stage.whileReceiverIsDown(() => sleep(flapMs));
        await sleep(flapMs);
      }
    },
    afterwards: isClosedAgain,
  },
];

/** @type {Scenario[]} */
export const parked = [
  {
    // Also a process that has just been given the probe, or makes it.
    name: 'parked-and-killed',
    quietWithinMs: 300_000,
    breakThings: (stage) =>
      stage.whileReceiverIsDown(async () => {
        await stage.untilParked();
        for (const role of inTurn(stage)) await killTogether(stage, [stage.random.oneOf(stage.cluster.of(role))]);
      }),
    afterwards: isClosedAgain,
  },
  {
    name: 'parked-and-redis-flushed',
    needsServers: true,
    quietWithinMs: 300_000,
    breakThings: (stage) =>
      stage.whileReceiverIsDown(async () => {
        await stage.untilParked();
        await stage.pause(1500, 2500); // until every process knows it, and calls that were open are in the ledger
        const before = { attempts: await stage.ledger.attempts(), accepted: await countAccepted(stage) };
        for (const _ of [...roundsOf(stage), ...roundsOf(stage)]) {
          await stage.servers.flushRedis();
          await stage.pause(1000, 2000);
          if ((await stage.ledger.openEndpoints()).length === 0)
            stage.wrong.push('the endpoint was not parked any more');
        }
        const attempts = (await stage.ledger.attempts()) - before.attempts;
        const published = (await countAccepted(stage)) - before.accepted;
        if (attempts > published * probesShare) {
          stage.wrong.push(`a parked endpoint was called ${attempts} times while ${published} were published for it`);
        }
      }),
    afterwards: isClosedAgain,
  },
];

/** @type {Scenario[]} */
export const order = [
  {
    name: 'order-and-kills',
    ...inOrder,
    breakThings: async (stage) => {
      for (const role of inTurn(stage)) {
        await killTogether(stage, [stage.random.oneOf(stage.cluster.of(role))]);
        // Failed attempts, which are repeated while later ones wait.
        await stage.whileReceiverIsDown(() => stage.pause(200, 1000));
      }
      await killTogether(stage, stage.cluster.of());
    },
  },
  {
    // Beside a worker that is well: what the frozen one has taken comes to it when RabbitMQ has missed two to three
    // heartbeats, of ten seconds each. All the time counts, none as broken.
    name: 'order-and-worker-frozen',
    ...inOrder,
    recoversWithinMs: 38_000,
    breakThings: async (stage) => {
      const worker = stage.random.oneOf(stage.cluster.of('worker'));
      worker.freeze();
      const held = await stage.heldBy([worker.pid]);
      await sleep(paceOf(stage).frozenInOrderMs);
      await stage.mayComeAgain(held);
      worker.thaw();
    },
  },
  {
    name: 'order-and-rabbitmq-wiped',
    needsServers: true,
    ...inOrder,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.whileBroken(() => stage.servers.rabbitmq.wipe());
        await stage.pause(1000, 2000);
      }
    },
  },
];

/** An endpoint that is well must not stay parked. @param {Stage} stage */
async function isClosedAgain(stage) {
  const open = await stage.ledger.openEndpoints();
  if (open.length > 0) stage.wrong.push(`in the end these are still parked: ${open.join(', ')}`);
  // The process that parked it may have been killed before its log was written. An endpoint that was closed had been
  // parked.
  const wasParked = (await stage.hasLogged('endpoint.opened')) || (await stage.hasLogged('endpoint.closed'));
  if (!wasParked) stage.wrong.push('no endpoint was ever parked');
}

/** @param {Stage} stage @returns {Promise<number>} */
async function countAccepted(stage) {
  return stage.publisher.call('accepted', undefined);
}
