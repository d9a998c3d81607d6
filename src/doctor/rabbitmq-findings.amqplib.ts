import type { ChannelModel } from 'amqplib';
import type { Settings } from '../config/settings.js';
import { reasonOf } from '../infra/cannot-connect.js';
import { answered } from '../infra/rabbitmq/answered.js';
import { close } from '../infra/rabbitmq/close.js';
import { connect } from '../infra/rabbitmq/connect.js';
import { connectionAdvice, refusalOf } from '../infra/rabbitmq/connection-advice.js';
import { serverVersionOf } from '../infra/rabbitmq/server-version.js';
import { tryPublishing } from '../infra/rabbitmq/try-publishing.js';
import { virtualHostOption } from '../infra/rabbitmq/virtual-host.js';
import { topology } from '../queue/topology.rabbitmq.js';
import { failed, ok, skipped, warning, type Finding } from './finding.js';

/**
 * RabbitMQ says that it is blocked when the first message comes; one that is not blocked confirms it in milliseconds.
 */
const confirmMs = 3000;

/** @param workers how many are known to be alive */
export async function examineRabbitMq(
  settings: Settings,
  workers: Promise<number> = Promise.resolve(0),
): Promise<Finding[]> {
  if (!settings.AMQP_URL) return [ok('rabbitmq', 'not used: the queue is in the memory of the process')];
  let model: ChannelModel | undefined;
  try {
    model = await connect(settings.AMQP_URL, 'heraut doctor');
    model.on('error', () => {}); // calls fail with it
    const declared = await queues(model, settings, await workers); // first: with an alarm RabbitMQ reads nothing more of a connection that has published
    return [server(model), await examineAlarms(model), declared];
  } catch (error) {
    return [
      failed('rabbitmq', reasonOf(error), connectionAdvice(error)),
      skipped('rabbitmq-alarms', 'RabbitMQ was not reached'),
      skipped('rabbitmq-queues', 'RabbitMQ was not reached'),
    ];
  } finally {
    if (model) await close(model, 1000);
  }
}

function server(model: ChannelModel): Finding {
  const version = serverVersionOf(model);
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 3 || (major === 3 && minor < 10))
    return failed(
      'rabbitmq',
      `RabbitMQ ${version}`,
      'Heraut needs RabbitMQ 3.10 or newer, for quorum queues with limits.',
    );
  return ok('rabbitmq', `RabbitMQ ${version}`);
}

/**
 * Publishes, and waits for the confirm that a server with an alarm does not give; it tells as well whether this user
 * may.
 */
export async function examineAlarms(model: ChannelModel): Promise<Finding> {
  const name = 'rabbitmq-alarms';
  const blocked = new Promise<string>((resolve) => model.once('blocked', resolve));
  let timer: NodeJS.Timeout | undefined;
  const silent = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, confirmMs, `no confirm within ${confirmMs / 1000} s`);
  });
  const channel = await answered(model, model.createConfirmChannel());
  channel.on('error', () => {}); // told by `tryPublishing`
  try {
    const why = await Promise.race([tryPublishing(channel), blocked, silent]);
    if (why === undefined) return ok(name, 'none: what is published is confirmed');
    return failed(
      name,
      `publishing is blocked: ${why}`,
      'Free memory or disk on its machine, or raise vm_memory_high_watermark or lower disk_free_limit (rabbitmq.conf of the project has values).',
    );
  } catch (error) {
    return failedOf(name, error);
  } finally {
    clearTimeout(timer);
  }
}

/** @throws `error`, where it is not that RabbitMQ refuses something: then the rest need not be looked at */
function failedOf(name: string, error: unknown): Finding {
  const refusal = refusalOf(error);
  if (!refusal) throw error;
  return failed(name, `${refusal.reason}: ${reasonOf(error)}`, refusal.advice);
}

async function queues(
  model: ChannelModel,
  { AMQP_URL, QUEUE_PREFIX, QUEUE_MAX_LENGTH }: Settings,
  workers: number,
): Promise<Finding> {
  const name = 'rabbitmq-queues';
  const there = virtualHostOption(AMQP_URL!);
  const lengths: string[] = [];
  let longest = 0;
  for (const declared of topology(QUEUE_PREFIX, QUEUE_MAX_LENGTH)) {
    const channel = await answered(model, model.createChannel());
    channel.on('error', () => {}); // a missing queue closes the channel
    const found = await answered(model, channel.checkQueue(declared.name)).catch((error: { code?: number }) => {
      if (error.code === 404) return undefined;
      throw error;
    });
    if (!found)
      return warning(
        name,
        `${declared.name} is not there`,
        'Start Heraut: it makes its queues. Was QUEUE_PREFIX changed?',
      );
    await close(channel);
    longest = Math.max(longest, found.messageCount);
    lengths.push(`${declared.name} ${found.messageCount}`);
    if (found.consumerCount === 0 && found.messageCount === 0 && workers > 0)
      return failed(
        name,
        `${declared.name} tells nothing of its messages and readers, although a worker is alive`,
        `A worker is starting or stopping (look again in a minute), its leader does not answer (rabbitmq-queues quorum_status ${there} ${declared.name}), or the workers do not reach RabbitMQ.`,
      );
    if (found.consumerCount === 0)
      return failed(
        name,
        `nobody reads ${declared.name} (${found.messageCount} messages)`,
        'Start a process with ROLES=worker.',
      );
    if (workers > 0 && found.consumerCount > workers)
      return failed(
        name,
        `${declared.name} has ${found.consumerCount} readers, more than workers are alive (${workers}), each of which is one`,
        'Another installation uses this virtual host with the same QUEUE_PREFIX: give each its own, or a virtual host. Or a worker was killed, or is starting: look again in a minute, or after three times the `heartbeat` in AMQP_URL (with 0, RabbitMQ may not notice for hours that a machine is gone).',
      );
  }
  const found = `${lengths.join(', ')} messages`;
  if (longest < QUEUE_MAX_LENGTH * 0.8) return ok(name, found);
  return warning(
    name,
    found,
    `Near the ${QUEUE_MAX_LENGTH} of QUEUE_MAX_LENGTH: start more workers. Deliveries that do not fit wait in the ledger. A queue holds no more than it was made with, or than a policy allows (rabbitmqctl list_queues ${there} name arguments policy).`,
  );
}
