import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedNowMs } from '../bench/clock.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./cluster.mjs').Member} Member */
/** @typedef {import('./cluster.mjs').Role} Role */

/** Deliveries queued a second time although the queue had them all along: more than this would be a storm. */
const superfluousShare = 0.01;
/** After the return of an empty RabbitMQ, the time in which everything that was in it must arrive. */
const drainedWithinMs = 15_000;

/** Of what is published while Redis cannot be used, this share must arrive meanwhile: deliveries go on. */
const goesOnShare = 0.25;

const shiftedClock = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url));

/** The lengths of a scenario: in full, with --quick, and among the tests. */
const paces = {
  full: {
    rounds: 5,
    // Past its lock, its sign of life in Redis, its heartbeat in Postgres, and the leases.
    frozenMs: 22_000,
    cuttingMs: 14_000,
    withoutRedisMs: 15_000,
    outageMs: 300_000,
    standstillMs: 300_000,
    standing: 50_000,
    wiped: 10_000,
  },
  quick: {
    rounds: 2,
    frozenMs: 8000,
    cuttingMs: 5000,
    withoutRedisMs: 5000,
    outageMs: 15_000,
    standstillMs: 40_000,
    standing: 2500,
    wiped: 2000,
  },
  brief: {
    rounds: 1,
    frozenMs: 6000,
    cuttingMs: 3000,
    withoutRedisMs: 2000,
    outageMs: 3000,
    standstillMs: 25_000,
    standing: 500,
    wiped: 500,
  },
};
/** @typedef {keyof typeof paces} Pace */

/** @param {Stage} stage */
const paceOf = (stage) => paces[stage.environment.pace];

/** @param {Stage} stage */
const roundsOf = (stage) => Array.from({ length: paceOf(stage).rounds });

/** Fewer commits cut would show too little. */
const enoughCuts = 10;

/** @type {Scenario[]} */
const withoutFault = [{ name: 'undisturbed', breakThings: (stage) => stage.pause(3000, 3000) }];

/** @type {Scenario[]} */
const processes = [
  { name: 'api-killed', breakThings: (stage) => killOneByOne(stage, 'api') },
  { name: 'worker-killed', breakThings: (stage) => killOneByOne(stage, 'worker') },
  { name: 'dispatcher-killed', breakThings: (stage) => killOneByOne(stage, 'dispatcher') },
  {
    name: 'all-killed',
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) await killTogether(stage, stage.cluster.of());
    },
  },
  {
    name: 'rolling-restart',
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
        await stage.noteLocked();
        await sleep(paceOf(stage).frozenMs);
        worker.thaw();
      });
    },
  },
  {
    name: 'worker-clock-off',
    prepare: (stage) => shiftClocks(stage, 'worker', [5, -7]),
    breakThings: (stage) => killOneByOne(stage, 'worker'),
  },
  {
    // By hours, and by more than the partitions that are made ahead: the id of a notification must not come from that clock.
    name: 'api-clock-off',
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

/** @type {Scenario[]} */
const rabbitmq = [
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
        await stage.pause(4000, 6000);
        await Promise.all(workers.map((worker) => worker.start()));
      }),
  },
];

/** @type {Scenario[]} */
const redis = [
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
const postgres = [
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
        for (let tries = 0; proxy.cuts < enoughCuts && tries < 600; tries++) await sleep(100);
        proxy.whereToCut = () => 'nowhere';
      });
      if (proxy.cuts < enoughCuts) stage.wrong.push(`only ${proxy.cuts} commits were cut`);
    },
  },
];

/** @type {Scenario[]} */
const receivers = [
  {
    name: 'receiver-dies-answering',
    answerAfterMs: 100,
    breakThings: async (stage) => {
      for (const _ of roundsOf(stage)) {
        await stage.whileBroken(async () => {
          stage.inFlight += (await stage.receiver.call('down', undefined))[0] ?? 0;
          await stage.pause(200, 1000);
          await stage.receiver.call('up', undefined);
        });
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
      await stage.whileBroken(async () => {
        stage.inFlight += (await stage.receiver.call('down', undefined))[0] ?? 0;
        await sleep(paceOf(stage).outageMs);
        await stage.receiver.call('up', undefined);
      });
    },
  },
];

/** @type {Scenario[]} */
const everything = [
  {
    name: 'power-cut',
    needsServers: true,
    breakThings: (stage) =>
      stage.whileBroken(async () => {
        const { servers, cluster } = stage;
        const all = [servers.postgres, servers.rabbitmq, servers.redis];
        await Promise.all([...all.map((server) => server.kill9()), ...cluster.of().map((member) => member.kill9())]);
        await stage.pause(500, 1000);
        await Promise.all(all.map((server) => server.start()));
        await stage.noteUnsettled();
        await cluster.heal();
      }),
  },
];

/** @type {Scenario[]} */
const backlogs = [
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
      if (tookMs > drainedWithinMs)
        stage.wrong.push(`the last delivery came ${Math.round(tookMs)} ms after the return of RabbitMQ`);
    },
  },
];

/** Every scenario, in the order in which they are played. */
export const scenarios = [
  ...withoutFault,
  ...processes,
  ...rabbitmq,
  ...redis,
  ...postgres,
  ...receivers,
  ...everything,
  ...backlogs,
];

/**
 * For longer than Heraut waits for Redis. A worker is killed while locks are in Postgres, and another when they are in Redis again.
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

/**
 * @param {Stage} stage
 * @param {Role} role
 */
async function killOneByOne(stage, role) {
  for (const _ of roundsOf(stage)) await killTogether(stage, [stage.random.oneOf(stage.cluster.of(role))]);
}

/**
 * @param {Stage} stage
 * @param {Member[]} victims
 */
async function killTogether(stage, victims) {
  await stage.whileBroken(async () => {
    await Promise.all(victims.map((victim) => victim.kill9()));
    if (victims.some(({ role }) => role === 'worker')) await stage.noteLocked();
    await stage.pause(200, 1500);
    await Promise.all(victims.map((victim) => victim.start()));
  });
  await stage.pause(1000, 2500);
}
