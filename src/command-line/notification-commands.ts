import type { Command } from 'commander';
import { deliveryTable } from './delivery-commands.js';
import type { Delivery } from './answers.js';
import { block, fields, moment, section, table } from './layout.js';
import { id, wholeNumber } from './options.js';
import { showList } from './pages.js';
import { addSearchOptions, searchQuery, type SearchOptions } from './search-options.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

const path = '/admin/v1/notifications';

interface Notification {
  id: string;
  channel: string;
  publisher: string;
  key: string | null;
  acceptedAt: string;
  notBefore: string | null;
}

/** Null, each: the body was erased, or is too long to look into. */
interface ListedNotification extends Notification {
  mainObject: string | null;
  resource: string | null;
  action: string | null;
}

interface StoryEvent {
  at: string | null;
  event: string;
  subscriptionId: string | null;
  attempt: number | null;
  status: number | null;
  reason: string | null;
  by: string | null;
  until: string | null;
  count: number | null;
}

interface WholeNotification extends Notification {
  body: string | null;
  duplicates: { publisher: string; key: string }[];
  deliveryCount: { count: number; isExact: boolean };
  deliveries: Delivery[];
  nextCursor: string | null;
  story: StoryEvent[];
}

export function addNotificationCommands(program: Command, session: Session): void {
  const notifications = program.command('notifications').description('Notifications: what publishers sent.');

  addSearchOptions(notifications.command('list'))
    .description('Lists notifications, the newest first.')
    .option('--unmatched', 'Those that matched no subscription.')
    .action((options: SearchOptions) => {
      const list = { path, key: 'notifications', query: searchQuery(options), limit: options.limit };
      return showList<ListedNotification>(session, list, (found) => drawList(session.terminal, found));
    });

  notifications
    .command('show')
    .description('Shows all that is known of one notification: body, deliveries, attempts, and its story.')
    .argument('<id>', 'as in its Notification-Id or webhook-id', id)
    .option('--limit <count>', 'At most so many deliveries.', wholeNumber(1, 500), 50)
    .option('--cursor <cursor>', 'Goes on with the deliveries where they ended.')
    .action(async (notification: string, { limit, cursor }: { limit: number; cursor?: string }) => {
      const { client, terminal } = session;
      const found = await client.request<WholeNotification>('GET', `${path}/${notification}`, {
        query: { limit, cursor },
      });
      session.show(found, () => drawWhole(terminal, found));
      if (found.nextCursor !== null) session.note(`It has more deliveries; --cursor ${found.nextCursor} goes on.`);
    });
}

const drawList = (terminal: Terminal, notifications: readonly ListedNotification[]): string =>
  notifications.length === 0
    ? 'No notifications.'
    : table(
        terminal,
        ['accepted', 'notification', 'channel', 'publisher', 'action', 'main object'],
        notifications.map((each) => [
          moment(each.acceptedAt),
          each.id,
          each.channel,
          each.publisher,
          each.action && `${each.action} ${each.resource}`,
          each.mainObject,
        ]),
      );

function drawWhole(terminal: Terminal, whole: WholeNotification): string {
  const { body, deliveries, deliveryCount, duplicates, story } = whole;
  const { count, isExact } = deliveryCount;
  return [
    fields(terminal, {
      notification: whole.id,
      channel: whole.channel,
      publisher: whole.publisher,
      accepted: moment(whole.acceptedAt),
      'not before': moment(whole.notBefore),
      key: whole.key ?? undefined,
      repeated:
        duplicates.length > 0 ? duplicates.map(({ publisher, key }) => `${publisher} (${key})`).join(', ') : undefined,
      deliveries: `${count}${isExact ? '' : ' or more'}`,
    }),
    section(terminal, 'Body', body === null ? '  erased' : block(JSON.stringify(JSON.parse(body), null, 2))),
    section(terminal, 'Deliveries', deliveryTable(terminal, deliveries)),
    section(
      terminal,
      'Story',
      table(
        terminal,
        ['at', 'subscription', 'event', ''],
        story.map((each) => [moment(each.at) ?? 'at some time', each.subscriptionId, each.event, detailOf(each)]),
      ),
    ),
  ].join('\n');
}

function detailOf({ attempt, status, reason, by, until, count }: StoryEvent): string {
  const parts = [
    attempt === null ? undefined : `attempt ${attempt}`,
    status === null ? undefined : `status ${status}`,
    reason,
    count === null ? undefined : `${count}`,
    until === null ? undefined : `until ${moment(until)}`,
    by === null ? undefined : `by ${by}`,
  ];
  return parts.filter((part) => part !== undefined && part !== null).join(', ');
}
