import { backlogs } from './backlog-scenarios.mjs';
import { processes } from './process-scenarios.mjs';
import { order, parked, receivers } from './receiver-scenarios.mjs';
import { postgres, rabbitmq, redis } from './server-scenarios.mjs';
import { supervised } from './supervised-scenarios.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */

/** @type {Scenario[]} */
const withoutFault = [{ name: 'undisturbed', learnsAll: true, breakThings: (stage) => stage.pause(3000, 3000) }];

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
const apart = [
  ...withoutFault,
  ...processes,
  ...rabbitmq,
  ...redis,
  ...postgres,
  ...receivers,
  ...parked,
  ...order,
  ...everything,
  ...backlogs,
];

/** Played again with processes that have every role: there most deliveries are never in RabbitMQ. */
const alsoTogether = [
  'worker-killed',
  'rolling-restart',
  'worker-frozen',
  'api-clock-off',
  'rabbitmq-wiped',
  'commit-cut',
  'parked-and-killed',
  'order-and-kills',
  'power-cut',
];

/** Every scenario, in the order in which they are played. @type {Scenario[]} */
export const scenarios = [
  ...apart,
  ...apart
    .filter(({ name }) => alsoTogether.includes(name))
    .map((scenario) => ({
      ...scenario,
      name: `together-${scenario.name}`,
      together: true,
      // To kill one with the role `api` kills a worker here.
      learnsAll: scenario.name === 'rolling-restart',
    })),
  ...supervised,
];
