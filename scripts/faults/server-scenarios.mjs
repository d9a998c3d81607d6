import { setTimeout as sleep } from 'node:timers/promises';
import { killTogether } from './kills.mjs';
import { paceOf, roundsOf } from './pace.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */
/** @typedef {import('./stage.mjs').Stage} Stage */

/** Of what is published while Redis cannot be used, this share must arrive meanwhile: deliveries go on. */
const goesOnShare = 0.25;
/** Fewer commits cut would show too little. */
const enoughCuts = 10;
/**
 * At each of these, once at least: a publication (each has an Idempotency-Key), an outcome, and a claim after which a
 * call is made once or never.
 */
const cutForSure = ['accept-on-terms', 'settle', 'claim-sending'];

/** @type {Scenario[]} */
export const rabbitmq = [
  {
    name: 'rabbitmq-killed',
    needsServers: true,
    breakThings: (stage) =>
      stage.whileBroken(async () => {
        await stage.servers.rabbitmq.kill9();
        await stage.pause(1000, 4000);
        await stage.servers.rabbitmq.start();
      }),
  },
  {
    name: 'rabbitmq-wiped',
    needsServers: true,
    breakThings: (stage) => stage.whileBroken(() => stage.servers.rabbitmq.wipe()),
  },
  {
    name: 'rabbitmq-memory-alarm',
    needsServers: true,
    breakThings: (stage) =>
      stage.whileBroken(async () => {
        await stage.servers.memoryAlarm();
        await stage.untilLogged('rabbitmq.blocked');
        await stage.pause(3000, 6000);
        await stage.servers.endMemoryAlarm();
      }),
  },
  {
    name: 'queue-full',
    settings: { QUEUE_MAX_LENGTH: '10' },
    breakThings: (stage) =>
      stage.whileBroken(async () => {
        const workers = stage.cluster.of('worker');
        await Promise.all(workers.map((worker) => worker.stop()));
        await stage.untilLogged('queue.refused');
        await stage.pause(4000, 6000);
        await Promise.all(workers.map((worker) => worker.start()));
      }),
  },
];

/** @type {Scenario[]} */
export const redis = [
  {
    name: 'redis-killed',
    needsServers: true,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.whileBroken(async () => {
          await stage.noteLocked();
          await stage.servers.redis.kill9();
          await stage.pause(500, 2500);
          await stage.servers.redis.start();
        });
        await stage.pause(1000, 2000);
      }
    },
  },
  {
    name: 'redis-flushed',
    needsServers: true,
    breakThings: async (stage) => {
      for (const _ of [...roundsOf(stage), ...roundsOf(stage)]) {
        await stage.noteLocked();
        await stage.servers.flushRedis();
        await stage.pause(300, 1000);
      }
    },
  },
  {
    name: 'redis-wiped',
    needsServers: true,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.noteLocked();
        await stage.whileBroken(() => stage.servers.redis.wipe());
        await stage.pause(1000, 2000);
      }
    },
  },
  {
    name: 'redis-full',
    needsServers: true,
    breakThings: (stage) =>
      goOnWithoutRedis(
        stage,
        () => stage.servers.fillRedis(),
        () => stage.servers.emptyRedis(),
      ),
  },
  {
    name: 'redis-frozen',
    needsServers: true,
    breakThings: (stage) =>
      goOnWithoutRedis(
        stage,
        () => stage.servers.redis.freeze(),
        () => stage.servers.redis.thaw(),
      ),
  },
  {
    name: 'redis-away',
    needsServers: true,
    breakThings: (stage) =>
      goOnWithoutRedis(
        stage,
        () => stage.servers.redis.kill9(),
        () => stage.servers.redis.start(),
      ),
  },
];

/** @type {Scenario[]} */
export const postgres = [
  {
    name: 'postgres-crashed',
    needsServers: true,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.whileBroken(async () => {
          await stage.servers.postgres.kill9();
          await stage.pause(500, 3000);
          await stage.servers.postgres.start();
        });
        await stage.pause(2000, 4000);
      }
    },
  },
  {
    name: 'postgres-slow',
    viaProxy: true,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.whileBroken(async () => {
          stage.proxy.delayMs = () => stage.random.between(50, 400);
          await stage.pause(2000, 4000);
          stage.proxy.delayMs = () => 0;
        });
        await stage.pause(500, 1000);
      }
    },
  },
  {
    name: 'commit-cut',
    viaProxy: true,
    breakThings: async (stage) => {
      const { proxy, random } = stage;
      await stage.whileBroken(async () => {
        proxy.whereToCut = () => (random.next() < 0.04 ? random.oneOf(['asked', 'answered']) : 'nowhere');
        await sleep(paceOf(stage).cuttingMs);
        // A busy machine commits less often in the same time.
        const isEnough = () => proxy.cuts >= enoughCuts && cutForSure.every((name) => proxy.cutAt.has(name));
        for (let tries = 0; !isEnough() && tries < 600; tries++) await sleep(100);
        proxy.whereToCut = () => 'nowhere';
      });
      if (proxy.cuts < enoughCuts) stage.wrong.push(`only ${proxy.cuts} commits were cut`);
      for (const name of cutForSure) if (!proxy.cutAt.has(name)) stage.wrong.push(`no commit of ${name} was cut`);
    },
  },
];

/**
 * For longer than Heraut waits for Redis. A worker is killed while locks are in Postgres, and another when they are in
 * Redis again.
 * @param {Stage} stage
 * @param {() => Promise<void>} begin
 * @param {() => Promise<void>} end
 */
async function goOnWithoutRedis(stage, begin, end) {
  const { withoutRedisMs } = paceOf(stage);
  await stage.noteLocked();
  await stage.whileBroken(async () => {
    await begin();
    await stage.untilRedisIsGivenUp();
    const arrivedBefore = await countArrivals(stage);
    await sleep(withoutRedisMs);
    const arrived = (await countArrivals(stage)) - arrivedBefore;
    const published = (stage.environment.ratePerSecond * withoutRedisMs) / 1000;
    if (arrived < published * goesOnShare) {
      stage.wrong.push(`without Redis ${arrived} at-least-once deliveries arrived while ${published} were published`);
    }
    await killTogether(stage, [stage.random.oneOf(stage.cluster.of('worker'))]);
    await end();
    await stage.untilRedisIsBack();
  });
  await killTogether(stage, [stage.random.oneOf(stage.cluster.of('worker'))]);
}

/** @param {Stage} stage @returns {Promise<number>} at least once */
async function countArrivals(stage) {
  const { different } = await stage.receiver.call('progress', undefined);
  return different[0] ?? 0;
}
