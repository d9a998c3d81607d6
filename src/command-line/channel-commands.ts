import type { Command } from 'commander';
import { counted } from '../infra/counted.js';
import type { Channel } from './answers.js';
import { CommandFailure, exits } from './exits.js';
import { fields, table } from './layout.js';
import type { Session } from './session.js';

const path = '/admin/v1/channels';

export function addChannelCommands(program: Command, session: Session): void {
  const channels = program.command('channels').description('Channels: what is published on.');

  channels
    .command('list')
    .description('Lists every channel.')
    .action(async () => {
      const all = await listChannels(session);
      session.show({ channels: all }, () =>
        all.length === 0
          ? 'No channels.'
          : table(
              session.terminal,
              ['name', 'filters', 'same for', 'oldest', 'id'],
              all.map((each) => [
                each.name,
                each.filters.join(', '),
                each.deduplication && `${each.deduplication.withinSeconds} s`,
                each.maxAgeSeconds && `${each.maxAgeSeconds} s`,
                each.id,
              ]),
            ),
      );
    });

  channels
    .command('show')
    .description('Shows one channel with its rules.')
    .argument('<name-or-id>')
    .action(async (nameOrId: string) => {
      const found = await findChannel(session, nameOrId);
      const { deduplication, maxAgeSeconds, bodyRetentionDays } = found;
      session.show(found, () =>
        fields(session.terminal, {
          name: found.name,
          id: found.id,
          documentation: found.documentationLink,
          filters: found.filters.join(', ') || 'any',
          duplicates: deduplication
            ? `the same ${deduplication.fields.join(', ')} within ${deduplication.withinSeconds} s`
            : 'none are recognised',
          'oldest sent': maxAgeSeconds === null ? 'any age' : `${maxAgeSeconds} s`,
          'bodies kept': bodyRetentionDays === null ? 'as configured' : counted(bodyRetentionDays, 'day'),
        }),
      );
    });

  channels
    .command('remove')
    .description('Removes a channel that no subscription names. Its notifications are kept as before.')
    .argument('<name-or-id>')
    .option('--yes', 'Does not ask.')
    .action(async (nameOrId: string, { yes = false }: { yes?: boolean }) => {
      const { id, name } = await findChannel(session, nameOrId);
      if (!(await session.confirm(`Remove the channel ${name}? Nothing can be published on it then.`, yes))) return;
      await session.client.request('DELETE', `${path}/${id}`);
      session.show({ id, name }, () => `${name} is removed.`);
    });
}

async function findChannel(session: Session, nameOrId: string): Promise<Channel> {
  const found = (await listChannels(session)).find(({ name, id }) => name === nameOrId || id === nameOrId);
  if (found) return found;
  throw new CommandFailure(exits.notFound, `There is no channel ${nameOrId}; \`heraut channels list\` has all.`);
}

const listChannels = async ({ client }: Session): Promise<Channel[]> =>
  (await client.request<{ channels: Channel[] }>('GET', path)).channels;
