import type { Command } from 'commander';
import { deliveryTable } from './delivery-commands.js';
import type { Delivery } from './answers.js';
import { block, fields, moment, section, table } from './layout.js';
import { id } from './options.js';
import { howToGoOn, readPages } from './pages.js';
import { addSearchOptions, searchQuery, type SearchOptions } from './search-options.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

const path = '/admin/v1/notifications';

interface Notification {
  id: string;
  channel: string;
  publisher: string;
  acceptedAt: string;
}

interface WholeNotification extends Notification {
  body: unknown;
  key?: string | null;
  deliveries: Delivery[];
  story: { at: string; event: string; detail?: string | null; subscriptionId?: string | null }[];
}

export function addNotificationCommands(program: Command, session: Session): void {
  const notifications = program.command('notifications').description('Notifications: what publishers sent.');

  addSearchOptions(notifications.command('list'))
    .description('Lists notifications, the newest first.')
    .option('--unmatched', 'Those that matched no subscription.')
    .action(async (options: SearchOptions) => {
      const { client, terminal } = session;
      const page = await readPages<Notification>(client, path, 'notifications', searchQuery(options), options.limit);
      const { items, ...rest } = page;
      session.show({ notifications: items, ...rest }, () => drawList(terminal, items));
      const more = howToGoOn(page);
      if (more) session.note(more);
    });

  notifications
    .command('show')
    .description('Shows all that is known of one notification: body, deliveries, attempts, and its story.')
    .argument('<id>', 'as in its Notification-Id or webhook-id', id)
    .action(async (notification: string) => {
      const found = (await session.client.request('GET', `${path}/${notification}`)) as WholeNotification;
      session.show(found, () => drawWhole(session.terminal, found));
    });
}

const drawList = (terminal: Terminal, notifications: readonly Notification[]): string =>
  notifications.length === 0
    ? 'No notifications.'
    : table(
        terminal,
        ['accepted', 'notification', 'channel', 'publisher'],
        notifications.map((each) => [moment(each.acceptedAt), each.id, each.channel, each.publisher]),
      );

function drawWhole(terminal: Terminal, { deliveries, story, body, ...rest }: WholeNotification): string {
  return [
    fields(terminal, {
      notification: rest.id,
      channel: rest.channel,
      publisher: rest.publisher,
      accepted: moment(rest.acceptedAt),
      key: rest.key ?? undefined,
    }),
    section(terminal, 'Body', body === null ? '  erased' : block(JSON.stringify(asJson(body), null, 2))),
    section(terminal, 'Deliveries', deliveryTable(terminal, deliveries)),
    section(
      terminal,
      'Story',
      table(
        terminal,
        ['at', 'subscription', 'event', ''],
        story.map((each) => [moment(each.at), each.subscriptionId, each.event, each.detail]),
      ),
    ),
  ].join('\n');
}

/** The body is kept as the text that receivers get. */
function asJson(body: unknown): unknown {
  if (typeof body !== 'string') return body;
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
