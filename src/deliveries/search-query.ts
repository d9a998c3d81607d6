import * as z from 'zod';
import { storable, timeInput, uuid } from '../infra/http/input-parts.js';
import { deliveryStates } from '../ledger/delivery.js';
import { lowestIdAt } from '../ledger/partitions.js';
import type { Criteria } from './criteria.js';
import { errorClasses } from './error-class.js';

/**
 * A notification may have one as long as a body; here the head of the request bounds it, which is answered 431 where it
 * is longer.
 */
const anyText = () => z.string().min(1).check(storable);
const text = (maxLength: number) => anyText().max(maxLength);

const time = () => timeInput().transform((value) => lowestIdAt(Date.parse(value)));

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'Must be a whole number.')
    .transform(Number)
    .pipe(z.int().min(least).max(most))
    .meta({ type: 'integer', pattern: undefined, minimum: least, maximum: most });

/** A colon or a backslash of the name has a backslash before it; before anything else that is an ordinary character. */
const nameAndColon = /^(?:\\[\s\S]|[^:\\])+:/;

/** Neither the name nor both together have a limit of their own: a notification may have a name as long as a body. */
const characteristic = () =>
  anyText()
    .regex(nameAndColon, 'Must be name:value.')
    .transform((given) => {
      const { length } = nameAndColon.exec(given)![0];
      return { name: given.slice(0, length - 1).replace(/\\([:\\])/g, '$1'), value: given.slice(length) };
    });
const mostCharacteristics = 10;

/** Parameters of the lists of deliveries and of notifications. */
export const searchQuery = {
  notification: uuid().optional().describe('UUID of the notification, as in its `Notification-Id` and `webhook-id`.'),
  channel: text(50).optional().describe('Name of the channel.'),
  publisher: text(255).optional().describe('Client id of the application that published it.'),
  subscription: uuid().optional().describe('UUID of the subscription.'),
  owner: text(255).optional().describe('Client id of the application that the subscription belongs to.'),
  state: z.enum(deliveryStates).optional().describe('Dead letters are in `failed`, `expired` and `unknown`.'),
  acceptedFrom: time()
    .optional()
    .describe('Not accepted before this time. By the time in its id, which was made up to seconds earlier.'),
  acceptedTo: time().optional().describe('Accepted before this time, likewise.'),
  minAttempts: wholeNumber(0, 1_000_000).optional().describe('HTTP calls made, at least.'),
  lastStatus: wholeNumber(100, 999).optional().describe('HTTP status of the last attempt.'),
  errorClass: z.enum(errorClasses).optional().describe('Why it has not arrived, by its last attempt.'),
  replay: uuid().optional().describe('UUID of the replay that last sent it again, cancelled or closed it with others.'),
  mainObject: anyText().optional().describe('Its `hoofdObject`, exactly.'),
  resourceUrl: anyText().optional().describe('Its `resourceUrl`, exactly.'),
  action: text(100).optional().describe('Its `actie`, exactly.'),
  characteristic: z
    .union([characteristic().transform((one) => [one]), z.array(characteristic()).min(1).max(mostCharacteristics)])
    .optional()
    .meta({
      type: 'array',
      items: { type: 'string', pattern: nameAndColon.source },
      minItems: 1,
      maxItems: mostCharacteristics,
      anyOf: undefined,
    })
    .describe(
      'One of its `kenmerken`, as `name:value`; the name in any spelling that a filter may have, with `\\:` for a colon in it and `\\\\` for a backslash. May be repeated: it has all of them.',
    ),
  key: text(255).optional().describe('The key under which its publisher published it.'),
};

type SearchInput = z.output<z.ZodObject<typeof searchQuery>>;

export const criteriaOf = (input: SearchInput): Criteria => ({
  notificationId: input.notification,
  channel: input.channel,
  publisher: input.publisher,
  subscriptionId: input.subscription,
  owner: input.owner,
  state: input.state,
  from: input.acceptedFrom,
  before: input.acceptedTo,
  minAttempts: input.minAttempts,
  lastStatus: input.lastStatus,
  errorClass: input.errorClass,
  replayId: input.replay,
  mainObject: input.mainObject,
  resourceUrl: input.resourceUrl,
  action: input.action,
  characteristics: input.characteristic,
  key: input.key,
});

export const boundedDescription =
  'Every parameter narrows the list. Where no index has what is sought, a limited part of the ledger is searched, from the newest on: then a page may be short, or empty, although the list goes on, and `searchedTo` says how far the search came.';

/** Of a page of such a list. */
export const pageEnd = {
  nextCursor: z
    .string()
    .nullable()
    .describe('Where the list goes on; null at its end. A page may be short, or empty, although the list goes on.'),
  searchedTo: z.iso
    .datetime()
    .nullable()
    .describe(
      'The search stopped at this time, although the page is not full: what is older comes with `nextCursor`. null: it did not stop.',
    ),
};
