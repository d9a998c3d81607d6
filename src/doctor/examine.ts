import { InvalidSettings, readSettings, type Settings } from '../config/settings.js';
import { failed, ok, skipped, type Finding } from './finding.js';
import { examineDataDirectory, examineNode, examineSuperuser } from './here.js';
import { examinePostgres, workersAlive } from './postgres-findings.pg.js';
import { examineRabbitMq } from './rabbitmq-findings.amqplib.js';
import { examineRedis } from './redis-findings.ioredis.js';

/**
 * Looks at all that Heraut needs, with the settings that a process started here would have. Changes nothing.
 */
export async function examine(environment: Record<string, string | undefined>): Promise<Finding[]> {
  const node = examineNode(process.versions.node);
  const settings = settingsOf(environment);
  if (settings instanceof InvalidSettings) {
    const servers = ['postgres', 'rabbitmq', 'redis', 'data-directory'];
    return [
      node,
      failed('settings', settings.message.replace(/^.*\n/, ''), 'docs/configuration.md has every setting.'),
      ...servers.map((name) => skipped(name, 'the settings are wrong')),
    ];
  }
  const lookedAtPostgres = examinePostgres(settings);
  const [postgres, rabbitMq, redis, directory] = await Promise.all([
    lookedAtPostgres,
    examineRabbitMq(settings, lookedAtPostgres.then(workersAlive)),
    examineRedis(settings),
    examineDataDirectory(settings),
  ]);
  const accepted = ok('settings', `accepted; ${stackOf(settings)}`);
  return [node, accepted, examineSuperuser(settings), directory, ...postgres, ...rabbitMq, ...redis];
}

function settingsOf(environment: Record<string, string | undefined>): Settings | InvalidSettings {
  try {
    return readSettings(environment);
  } catch (error) {
    if (error instanceof InvalidSettings) return error;
    throw error;
  }
}

const stackOf = ({ DATABASE_URL, AMQP_URL, REDIS_URL }: Settings): string =>
  [
    DATABASE_URL ? 'Postgres' : 'embedded database',
    AMQP_URL ? 'RabbitMQ' : 'queue in memory',
    ...(REDIS_URL ? ['Redis'] : []),
  ].join(', ');
