import type { Command } from 'commander';
import type { Delivery, DeliveryWithAttempts } from './answers.js';
import { block, fields, moment, section, table } from './layout.js';
import { id } from './options.js';
import { showList } from './pages.js';
import { addEndingCommands } from './replay-commands.js';
import { addSearchOptions, searchQuery, type SearchOptions } from './search-options.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

const path = '/admin/v1/deliveries';

export function addDeliveryCommands(program: Command, session: Session): void {
  const deliveries = program.command('deliveries').description('Deliveries: one notification for one subscription.');

  addSearchOptions(deliveries.command('list'))
    .description('Lists deliveries, the newest notification first.')
    .option('--notification <id>', 'Of this notification.', id)
    .action((options: SearchOptions) => {
      const list = { path, key: 'deliveries', query: searchQuery(options), limit: options.limit };
      return showList<Delivery>(session, list, (found) => deliveryTable(session.terminal, found));
    });

  deliveries
    .command('show')
    .description('Shows one delivery with every attempt and what its receiver answered.')
    .argument('<notification>', 'id of the notification', id)
    .argument('<subscription>', 'id of the subscription', id)
    .action(async (notification: string, subscription: string) => {
      const delivery = await session.client.request<DeliveryWithAttempts>(
        'GET',
        `${path}/${notification}/${subscription}`,
      );
      session.show(delivery, () => drawDelivery(session.terminal, delivery));
    });

  deliveries
    .command('retry')
    .description('Makes the next attempt due now; one that ended without success starts a new series.')
    .argument('<notification>', 'id of the notification', id)
    .argument('<subscription>', 'id of the subscription', id)
    .action((notification: string, subscription: string) => change(session, notification, subscription, 'retry'));

  deliveries
    .command('cancel')
    .description('Ends a delivery: no further attempt is made.')
    .argument('<notification>', 'id of the notification', id)
    .argument('<subscription>', 'id of the subscription', id)
    .action((notification: string, subscription: string) => change(session, notification, subscription, 'cancel'));

  addEndingCommands(deliveries, session);
}

async function change(
  session: Session,
  notification: string,
  subscription: string,
  verb: 'retry' | 'cancel',
): Promise<void> {
  const changed = await session.client.request<Delivery>('POST', `${path}/${notification}/${subscription}/${verb}`);
  session.show(changed, () => drawFields(session.terminal, changed));
  if (verb === 'retry')
    session.note(`\`heraut deliveries show ${notification} ${subscription}\` says what came of it.`);
}

export const deliveryTable = (terminal: Terminal, deliveries: readonly Delivery[]): string =>
  deliveries.length === 0
    ? 'No deliveries.'
    : table(
        terminal,
        ['accepted', 'notification', 'subscription', 'channel', 'state', 'tries', 'status', 'next / ended', 'error'],
        deliveries.map((each) => [
          moment(each.acceptedAt),
          each.notificationId,
          each.subscriptionId,
          each.channel,
          stateOf(each),
          each.attemptCount,
          each.lastStatus,
          moment(each.endedAt ?? each.nextAttemptAt),
          shortened(each.lastError),
        ]),
      );

function drawDelivery(terminal: Terminal, delivery: DeliveryWithAttempts): string {
  const { attempts, live } = delivery;
  const last = attempts.at(-1);
  return [
    drawFields(terminal, delivery),
    // That it waits, the ledger says better: it knows for what.
    ...(live?.startedAt ? [`At this moment: ${live.status} since ${moment(live.startedAt)}`] : []),
    section(
      terminal,
      'Attempts',
      attempts.length === 0
        ? 'None yet.'
        : table(
            terminal,
            ['nr', 'started', 'took', 'status', 'called', 'error'],
            attempts.map((each) => [
              each.number,
              moment(each.startedAt),
              `${each.durationMs} ms`,
              each.status,
              each.address,
              each.error,
            ]),
          ),
    ),
    ...(last?.responseBody ? [section(terminal, 'Its receiver answered last', block(last.responseBody))] : []),
  ].join('\n');
}

const drawFields = (terminal: Terminal, delivery: Delivery): string =>
  fields(terminal, {
    notification: delivery.notificationId,
    subscription: delivery.subscriptionId,
    channel: delivery.channel,
    accepted: moment(delivery.acceptedAt),
    state: stateOf(delivery),
    tries: `${delivery.attemptCount}${delivery.replayCount > 0 ? `, sent again ${delivery.replayCount} times` : ''}`,
    'next try': moment(delivery.nextAttemptAt),
    ended: moment(delivery.endedAt),
    'last status': delivery.lastStatus,
    'last error': delivery.lastError,
  });

const stateOf = ({ state, heldFor }: Delivery): string => (heldFor === null ? state : `${state} (${heldFor})`);

/** The whole text is in `deliveries show`. */
const shortened = (text: string | null): string | null =>
  text !== null && text.length > 60 ? `${text.slice(0, 59)}…` : text;
