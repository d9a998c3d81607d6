import { Option, type Command } from 'commander';
import { deliveryStates } from '../ledger/delivery.js';
import type { QueryValue } from './admin-client.js';
import { id, repeated, timeInPast, wholeNumber } from './options.js';

export interface SearchOptions {
  notification?: string;
  channel?: string;
  publisher?: string;
  subscription?: string;
  owner?: string;
  state?: string;
  since?: string;
  until?: string;
  minAttempts?: number;
  status?: number;
  errorClass?: string;
  replay?: string;
  mainObject?: string;
  resourceUrl?: string;
  action?: string;
  characteristic?: string[];
  key?: string;
  unmatched?: true;
  limit: number;
  cursor?: string;
}

/** Shown by --help; the server has the last word. */
const times = 'e.g. 10m, 2h, 3d ago, or 2026-11-22T08:00Z';

/** How lists of notifications and of deliveries are narrowed. */
export const addSearchOptions = (command: Command): Command =>
  command
    .option('--channel <name>', 'Of this channel.')
    .option('--publisher <client-id>', 'Published by this application.')
    .option('--subscription <id>', 'For this subscription.', id)
    .option('--owner <client-id>', 'For subscriptions of this application.')
    .addOption(
      new Option('--state <state>', 'In this state; dead letters are failed, expired and unknown.').choices(
        deliveryStates,
      ),
    )
    .option('--since <time>', `Accepted not before then: ${times}.`, timeInPast)
    .option('--until <time>', 'Accepted before then.', timeInPast)
    .option('--min-attempts <count>', 'Tried at least so often.', wholeNumber(0, 1_000_000))
    .option('--status <code>', 'Last answered with this HTTP status.', wholeNumber(100, 999))
    .option('--error-class <class>', 'Last failed in this way: timeout, connection, tls, status-5xx and so on.')
    .option('--replay <id>', 'Last sent again, cancelled or closed by this replay.', id)
    .option('--main-object <url>', 'About this hoofdObject.')
    .option('--resource-url <url>', 'About this resourceUrl.')
    .option('--action <name>', 'With this actie.')
    .option(
      '--characteristic <name:value>',
      'With this kenmerk; \\: is a colon in its name, \\\\ a backslash. May be repeated.',
      repeated,
    )
    .option('--key <key>', 'Published under this Idempotency-Key, or this key of a PUT.')
    .option('--limit <count>', 'At most so many.', wholeNumber(1, 100_000), 50)
    .option('--cursor <cursor>', 'Goes on where a list ended.');

/** The parameters of the query; `limit` is that of the command line, not of a page. */
export const searchQuery = ({ since, until, status, ...rest }: SearchOptions): Record<string, QueryValue> => ({
  ...rest,
  limit: undefined,
  acceptedFrom: since,
  acceptedTo: until,
  lastStatus: status,
});
