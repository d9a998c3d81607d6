import { Option, type Command } from 'commander';
import type { Subscription, SubscriptionWithHeld } from './answers.js';
import { fields, moment, section, table } from './layout.js';
import { id } from './options.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

const path = '/admin/v1/subscriptions';

interface ListOptions {
  channel?: string;
  owner?: string;
  endpoint?: string;
  state?: string;
}

/** Verb → what it does. */
const changes = {
  pause: 'Holds its deliveries, those of new notifications too.',
  resume: 'Sends what is held for it, the oldest first.',
  enable: 'Sends again to a receiver that answered 410 Gone.',
} as const;

export function addSubscriptionCommands(program: Command, session: Session): void {
  const subscriptions = program.command('subscriptions').description('Subscriptions: who gets what, and where.');

  subscriptions
    .command('list')
    .description('Lists subscriptions, the oldest first.')
    .option('--channel <name>', 'To this channel.')
    .option('--owner <client-id>', 'Of this application.')
    .option('--endpoint <address>', 'That lead to this endpoint, as `endpoints list` shows it.')
    .addOption(
      new Option(
        '--state <state>',
        'In this state, and perhaps others; unreadable: its secrets cannot be decrypted by the process that answers; parked: its endpoint is in trouble.',
      ).choices(['enabled', 'paused', 'disabled', 'unreadable', 'parked']),
    )
    .action(async ({ channel, owner, endpoint, state }: ListOptions) => {
      const query = { channel, owner, endpoint, state };
      const { subscriptions: found } = await session.client.request<{ subscriptions: Subscription[] }>('GET', path, {
        query,
      });
      session.show({ subscriptions: found }, () => drawList(session.terminal, found));
    });

  subscriptions
    .command('show')
    .description('Shows one subscription and what is held for it.')
    .argument('<id>', 'id of the subscription', id)
    .action(async (subscription: string) => {
      const found = await session.client.request<SubscriptionWithHeld>('GET', `${path}/${subscription}`);
      session.show(found, () => draw(session.terminal, found));
    });

  for (const [verb, description] of Object.entries(changes)) {
    subscriptions
      .command(verb)
      .description(description)
      .argument('<id>', 'id of the subscription', id)
      .action(async (subscription: string) => {
        const changed = await session.client.request<Subscription>('POST', `${path}/${subscription}/${verb}`);
        session.show(changed, () => `${changed.id} is ${stateOf(changed)} (${changed.callbackUrl}).`);
      });
  }

  subscriptions
    .command('drop-held')
    .description('Cancels what is held for a paused subscription at this moment.')
    .argument('<id>', 'id of the subscription', id)
    .option('--yes', 'Does not ask.')
    .action(async (subscription: string, { yes = false }: { yes?: boolean }) => {
      const { held, callbackUrl } = await session.client.request<SubscriptionWithHeld>(
        'GET',
        `${path}/${subscription}`,
      );
      const question = `Cancel the ${countOf(held)} held ${held.count === 1 ? 'delivery' : 'deliveries'} for ${callbackUrl}? They are not sent any more.`;
      if (!(await session.confirm(question, yes))) return;
      const dropping = await session.client.request<Subscription>('POST', `${path}/${subscription}/drop-held`);
      session.show(dropping, () => 'They are being cancelled.');
    });
}

/** One that is disabled may be paused as well: enabled, its deliveries are still held. */
const stateOf = ({ disabledAt, pausedAt, credentials }: Subscription): string =>
  [disabledAt && 'disabled', pausedAt && 'paused', credentials.unreadable && 'unreadable'].filter(Boolean).join(', ') ||
  'enabled';

const countOf = ({ count }: SubscriptionWithHeld['held']): string => (count >= 10_000 ? '10,000 or more' : `${count}`);

const drawList = (terminal: Terminal, subscriptions: readonly Subscription[]): string =>
  subscriptions.length === 0
    ? 'No subscriptions.'
    : table(
        terminal,
        ['id', 'state', 'owner', 'channels', 'callback'],
        subscriptions.map((each) => [
          each.id,
          stateOf(each),
          each.ownerClientId,
          [...new Set(each.channels.map(({ channel }) => channel))].join(', '),
          each.callbackUrl,
        ]),
      );

function draw(terminal: Terminal, subscription: SubscriptionWithHeld): string {
  const { held, timeoutSeconds, maxConcurrency, ratePerSecond } = subscription;
  const reasons = Object.entries(held.byReason).map(([reason, count]) => `${count} ${reason}`);
  return [
    fields(terminal, {
      id: subscription.id,
      owner: subscription.ownerClientId,
      callback: subscription.callbackUrl,
      state: stateOf(subscription),
      since: [moment(subscription.disabledAt), moment(subscription.pausedAt)].filter(Boolean).join(', ') || undefined,
      'nothing is sent': subscription.credentials.unreadable ?? undefined,
      guarantee: subscription.effectiveGuarantee,
      order: subscription.ordering,
      'time limit': timeoutSeconds === null ? 'as configured' : `${timeoutSeconds} s`,
      pace: [maxConcurrency && `${maxConcurrency} at once`, ratePerSecond && `${ratePerSecond} a second`]
        .filter(Boolean)
        .join(', '),
      held:
        held.count === 0
          ? 'nothing'
          : `${countOf(held)} (${reasons.join(', ')})${held.isDropping ? ', being dropped' : ''}`,
      'oldest held': moment(held.oldestAt) ?? undefined,
    }),
    section(
      terminal,
      'Gets what fits one of these',
      table(
        terminal,
        ['channel', 'filters'],
        subscription.channels.map(({ channel, filters }) => [
          channel,
          Object.entries(filters)
            .map(([name, value]) => `${name}=${value}`)
            .join(' and ') || 'all',
        ]),
      ),
    ),
  ].join('\n');
}
