import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { answer, Receiver } from '../support/receiver.js';
import type { HerautProcess } from '../support/spawn-heraut.js';
import { real, type PreparedStack } from '../support/stacks.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** Nothing that was swallowed is handed out anew while a test waits: what arrives has come back through RabbitMQ. */
const settings = { DELIVERY_LEASE_MS: '600000' };

let prepared: PreparedStack;
let proxy: TcpProxy;
let receiver: Receiver;
let heraut: Installation;
/** The worker whose way to Postgres the test cuts. */
let cutOff: HerautProcess;

beforeEach(async () => {
  prepared = await real.prepare();
  proxy = await TcpProxy.start(prepared.settings.DATABASE_URL!);
  receiver = await Receiver.start();
  heraut = await Installation.startWith(prepared, ['api,dispatcher', 'worker'], settings);
  const throughProxy = await Installation.startWith(prepared, ['worker'], { ...settings, DATABASE_URL: proxy.url });
  cutOff = throughProxy.api;
  heraut.processes.push(cutOff);
});

afterEach(async () => {
  await heraut.end();
  await receiver.stop();
  await proxy.cut();
  await prepared.release();
});

const logged = (event: string) => cutOff.logs.filter((line) => line.event === event).length;

it('a worker that cannot reach Postgres leaves what it has taken to those that can, and takes again when it can too', async () => {
  const channel = await heraut.createChannel();
  const subscription = await heraut.subscribe({ channel, url: receiver.url, deliveryGuarantee: 'at-most-once' });
  receiver.always(answer(204));
  await heraut.becomes('delivered', (await heraut.publish(channel)).id, subscription);

  await proxy.cut();
  const published = await heraut.publishMany(channel, 30);
  await eventually(() => logged('queue.given-back') === 1, 'the worker to give back its chunks');
  for (const { id } of published) await heraut.becomes('delivered', id, subscription);
  for (const { id } of await heraut.publishMany(channel, 30)) await heraut.becomes('delivered', id, subscription);
  expect(receiver.notifications).toHaveLength(61);

  await proxy.restore();
  await eventually(() => logged('queue.taken-again') === 1, 'the worker to take again');
  await heraut.processes[1]!.stop();
  await heraut.becomes('delivered', (await heraut.publish(channel)).id, subscription);
  expect(receiver.notifications).toHaveLength(62);
});
