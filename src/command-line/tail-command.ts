import { Option, type Command } from 'commander';
import type { ServerSentEvent } from './event-parser.js';
import { followEvents } from './follow-events.js';
import { moment } from './layout.js';
import { id, wholeNumber } from './options.js';
import { printable } from './printable.js';
import { deliveryStates } from '../ledger/delivery.js';
import type { Session } from './session.js';

interface TailOptions {
  event?: string;
  channel?: string;
  subscription?: string;
  state?: string;
  after?: string;
  count?: number;
}

export function addTailCommand(program: Command, session: Session): void {
  program
    .command('tail')
    .description('Shows what happens as it happens, until Ctrl-C. With --json one event a line.')
    .option('--event <kind>', 'Only events of this kind, such as delivery.attempted.')
    .option('--channel <name>', 'Only what is about this channel.')
    .option('--subscription <id>', 'Only what is about this subscription.', id)
    .addOption(new Option('--state <state>', 'Only deliveries in this state after it.').choices(deliveryStates))
    .option('--after <id>', 'Goes on behind this event; they are kept for five minutes.')
    .option('--count <count>', 'Ends after so many.', wholeNumber(1, 1_000_000))
    .action((options: TailOptions) => tail(session, options));
}

async function tail(session: Session, { after, count = Infinity, ...query }: TailOptions): Promise<void> {
  let [left, last] = [count, after];
  const following = {
    query,
    lastEventId: after,
    onLost: (why: string) => session.terminal.note(`The connection is lost, and made again: ${printable(why)}`),
    onAgain: () => session.terminal.note('Connected again.'),
  };
  const { unread } = session.terminal;
  await session.terminal.untilInterrupted(async (interrupted) => {
    for await (const event of followEvents(session.client, following, AbortSignal.any([interrupted, unread]))) {
      session.terminal.print(session.isJson ? event.data : line(event));
      last = event.id ?? last;
      if ((left -= 1) === 0) return;
    }
  });
  if (last !== undefined && !unread.aborted)
    session.note(`\`--after ${last}\` goes on behind the last one, for five minutes.`);
}

/** Fields that have a place of their own in the line, or that the kind says. */
const placed = new Set(['id', 'at', 'event']);

function line({ data }: ServerSentEvent): string {
  const event = JSON.parse(data) as Record<string, unknown>;
  const rest = Object.entries(event)
    .filter(([name, value]) => !placed.has(name) && value !== null)
    .map(([name, value]) => `${name}=${printable(typeof value === 'string' ? value : JSON.stringify(value))}`);
  const at = moment(event.at as string | undefined) ?? ' '.repeat(20);
  return `${at}  ${printable(String(event.event)).padEnd(21)}  ${rest.join(' ')}`;
}
