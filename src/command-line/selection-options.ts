import type { Command } from 'commander';
import { CommandFailure, exits } from './exits.js';
import { id, repeated, repeatedId, timeInPast } from './options.js';

export interface SelectionOptions {
  notification?: string;
  subscription?: string[];
  channel?: string[];
  since?: string;
  until?: string;
  state?: string[];
  errorClass?: string[];
  everythingFor?: string;
  all?: true;
}

/** Which deliveries an operator means, where several are worked on at once. */
export const addSelectionOptions = (command: Command): Command =>
  command
    .option('--notification <id>', 'Of this notification.', id)
    .option('--subscription <id>', 'Of this subscription; may be repeated.', repeatedId)
    .option('--channel <name>', 'Of this channel; may be repeated.', repeated)
    .option('--since <time>', 'Of notifications accepted not before then: 10m, 2h, 3d ago, or a time.', timeInPast)
    .option('--until <time>', 'Of notifications accepted before then.', timeInPast)
    .option('--state <state>', 'In this state; may be repeated.', repeated)
    .option('--error-class <class>', 'That last failed in this way, such as status-5xx; may be repeated.', repeated)
    .option('--all', 'All of them: needed where nothing else narrows it.');

export const addEverythingFor = (command: Command): Command =>
  command.option('--everything-for <id>', 'All that this subscription would have got with the filters it has now.', id);

/**
 * As the admin API takes it; what was not given is absent.
 * @throws {CommandFailure} when nothing was given
 */
export function selectionOf(options: SelectionOptions): Record<string, unknown> {
  const { notification, subscription, channel, since, until, state, errorClass, everythingFor, all } = options;
  const selection = {
    notification,
    subscriptions: subscription,
    channels: channel,
    acceptedFrom: since,
    acceptedTo: until,
    states: state,
    errorClasses: errorClass,
    everythingFor,
    all,
  };
  const given = Object.entries(selection).filter(([, value]) => value !== undefined);
  if (given.length === 0) throw new CommandFailure(exits.wrongUse, 'Say which deliveries are meant, or --all of them.');
  return Object.fromEntries(given);
}
