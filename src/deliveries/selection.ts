import * as z from 'zod';
import { storable, timeInput, uuid } from '../infra/http/input-parts.js';
import { deadStates, deliveryStates } from '../ledger/delivery.js';
import { errorClasses } from './error-class.js';

/** Each field narrows it further. */
const narrowing = [
  'notification',
  'subscriptions',
  'channels',
  'acceptedFrom',
  'acceptedTo',
  'errorClasses',
  'groups',
  'deliveries',
  'replay',
  'everythingFor',
] as const;

/** Which deliveries an operator means: everywhere where several are worked on at once. */
export const selectionInput = z
  .strictObject({
    notification: uuid().optional().describe('Of this notification.'),
    subscriptions: z.array(uuid()).min(1).max(1000).optional().describe('Of these subscriptions.'),
    channels: z
      .array(z.string().min(1).max(50).check(storable))
      .min(1)
      .max(100)
      .optional()
      .describe('Of notifications of these channels.'),
    acceptedFrom: timeInput().optional().describe('Of notifications that were not accepted before this time.'),
    acceptedTo: timeInput().optional().describe('Of notifications that were accepted before this time.'),
    states: z
      .array(z.enum(deliveryStates))
      .min(1)
      .max(deliveryStates.length)
      .optional()
      .describe(
        'In these states. Which ones may be named, and which ones are meant otherwise, depends on what is done.',
      ),
    errorClasses: z
      .array(z.enum(errorClasses))
      .min(1)
      .max(errorClasses.length)
      .optional()
      .describe('Whose last attempt failed of one of these.'),
    groups: z
      .array(z.strictObject({ subscriptionId: uuid(), state: z.enum(deadStates), errorClass: z.enum(errorClasses) }))
      .min(1)
      .max(500)
      .optional()
      .describe('Dead letters of these groups, as `GET /admin/v1/dead-letters` lists them.'),
    deliveries: z
      .array(z.strictObject({ notificationId: uuid(), subscriptionId: uuid() }))
      .min(1)
      .max(500)
      .optional()
      .describe('Of these ones.'),
    replay: uuid().optional().describe('That this replay last sent again, cancelled or closed.'),
    everythingFor: uuid()
      .optional()
      .describe(
        'A replay only: all that this subscription would have got with the filters it has now, also what was accepted before it was created.',
      ),
    all: z.literal(true).optional().describe('Needed where nothing but `states` narrows it, and nowhere else.'),
  })
  .superRefine((selection, context) => {
    const refuse = (name: string, message: string) =>
      context.addIssue({ code: 'custom', path: [name], message, input: selection });
    const isNarrowed = !meansEverything(selection);
    if (!isNarrowed && !selection.all) refuse('all', 'Nothing narrows the selection: say that you mean all of them.');
    if (isNarrowed && selection.all) refuse('all', 'The selection is narrowed by other fields.');
    const { acceptedFrom, acceptedTo, everythingFor, subscriptions, deliveries } = selection;
    if (acceptedFrom !== undefined && acceptedTo !== undefined && acceptedFrom >= acceptedTo)
      refuse('acceptedTo', 'Is not after acceptedFrom.');
    if (everythingFor === undefined) return;
    if (subscriptions) refuse('subscriptions', 'everythingFor names the subscription.');
    if (deliveries) refuse('deliveries', 'Everything, or these: not both.');
    for (const name of ['errorClasses', 'groups', 'replay'] as const)
      if (selection[name]) refuse(name, 'Notifications that were not sent have not failed.');
  })
  .meta({ id: 'Selection' });

export type Selection = z.output<typeof selectionInput>;

/** The same as an answer shows it. */
export const selectionOutput = z
  .strictObject({
    notification: z.uuid(),
    subscriptions: z.array(z.uuid()),
    channels: z.array(z.string()),
    acceptedFrom: z.iso.datetime(),
    acceptedTo: z.iso.datetime(),
    states: z.array(z.enum(deliveryStates)),
    errorClasses: z.array(z.enum(errorClasses)),
    groups: z.array(
      z.strictObject({ subscriptionId: z.uuid(), state: z.enum(deadStates), errorClass: z.enum(errorClasses) }),
    ),
    deliveries: z.array(z.strictObject({ notificationId: z.uuid(), subscriptionId: z.uuid() })),
    replay: z.uuid(),
    everythingFor: z.uuid(),
    all: z.literal(true),
  })
  .partial()
  .meta({ id: 'SelectionAsked' });

/** Neither a window nor anything else narrows it: states alone do not count. */
export const meansEverything = (selection: Partial<Selection>): boolean =>
  narrowing.every((name) => selection[name] === undefined);
