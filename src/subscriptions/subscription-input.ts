import * as z from 'zod';
import { longestChannelName } from '../channels/channel-limits.js';
import { canonicalName } from '../channels/filter-names.js';
import {
  credentialChangesInput,
  readCredentialChanges,
  type CredentialChanges,
} from '../credentials/credentials-io.js';
import { atMost } from '../infra/http/at-most.js';
import { storable } from '../infra/http/input-parts.js';
import { mostInvalidParams, ValidationProblem } from '../infra/http/problem.js';
import { hasCredentials, isWebUrl, tooManyBytes } from '../nrc/fields.js';
import { refusalOfNames, type FindChannel } from './read-abonnement.js';
import type { SubscriptionInput, SubscriptionSettings } from './subscription-changes.js';
import {
  longestCallbackUrl,
  longestDemandedName,
  longestDemandedValue,
  mostDemands,
  mostEntries,
} from './subscription-limits.js';
import type { SubscribedChannel } from './subscription.js';
import { subscriptionSettingsInput } from './subscriptions-io.js';

export const inputText = (longest: number) => z.string().trim().min(1).max(longest).check(storable);

/** Without credentials in it, as it is stored and shown. @param longest in bytes */
export const webUrl = (longest: number) =>
  z
    .string()
    .trim()
    .max(longest)
    .check((context) => {
      const { value: input } = context;
      if (input.length > longest || Buffer.byteLength(input) <= longest) return;
      const message = tooManyBytes(longest).reason;
      context.issues.push({ code: 'too_big', origin: 'string', maximum: longest, input, message });
    })
    .refine(isWebUrl, 'Not an absolute http or https URL.')
    .refine((url) => !isWebUrl(url) || !hasCredentials(url), 'Credentials do not belong in a URL.')
    .check(storable);

const demands = z.record(z.string().max(longestDemandedName).check(storable), inputText(longestDemandedValue));

const subscribedChannelInput = z.strictObject({
  channel: inputText(longestChannelName).describe('Name of a channel.'),
  filters: atMost(mostDemands, demands.meta({ maxProperties: mostDemands }))
    .default({})
    .describe(
      'Characteristic → the value it must have, or `*` for any. All of them must fit. Left out: it gets all of the channel.',
    ),
});

const entries = z.array(subscribedChannelInput).max(mostEntries);

const whatItGets =
  'The notifications that it gets. Entries are alternatives; the same channel may occur several times.';
export const channelsInput = atMost(mostEntries, entries).describe(whatItGets);

const callbackUrl = webUrl(longestCallbackUrl).describe(
  'The webhook. Every application can read it, so a key belongs in the credentials, not in the URL. It is called at once, as when an abonnement is made: it must answer 401 or 403 to a call without authorization, and 200 to 209 to one with it.',
);

export const newSubscriptionInput = subscriptionSettingsInput
  .extend({
    ownerClientId: inputText(255).describe(
      'Client id of the application that it belongs to. Without the scope `notificaties.consumeren` that cannot read, change or delete it.',
    ),
    callbackUrl,
    channels: channelsInput.default([]).describe(`${whatItGets} Left out: it gets nothing.`),
    credentials: credentialChangesInput.describe(
      '`authorization` must be given, and its `auth` where it is `verbatim`.',
    ),
  })
  .meta({ id: 'NewSubscription' });

export const subscriptionChangesInput = subscriptionSettingsInput
  .extend({
    callbackUrl: callbackUrl.describe(
      'The webhook. It is called at once where it is a new one, or the subscription is disabled, which it ends.',
    ),
    channels: channelsInput,
  })
  .partial()
  .meta({ id: 'SubscriptionChanges' });

export const filtersPreviewInput = z
  .strictObject({ channels: atMost(mostEntries, entries.min(1)) })
  .meta({ id: 'FiltersPreviewInput' });

export type NewSubscription = SubscriptionInput &
  Partial<SubscriptionSettings> & { ownerClientId: string; credentials: CredentialChanges };

/**
 * The subscription that an operator describes.
 * @param nowMs milliseconds since 1970
 * @throws {ValidationProblem}
 */
export function readNewSubscription(
  { credentials: given, deliveryGuarantee = null, ...input }: z.output<typeof newSubscriptionInput>,
  findChannel: FindChannel,
  nowMs: number,
): NewSubscription {
  const credentials = readCredentials(given, nowMs);
  if (!credentials.authorization) throw required('credentials.authorization');
  if (credentials.authorization.kind === 'verbatim' && credentials.auth === undefined)
    throw required('credentials.authorization.auth');
  checkChannels(input.channels, findChannel);
  return { ...input, auth: credentials.auth ?? '', credentials, deliveryGuarantee };
}

/** @throws {ValidationProblem} for an entry about a channel that there is not, or with filters that do not fit it */
export function checkChannels(channels: readonly SubscribedChannel[], findChannel: FindChannel): void {
  const wrong = channels.flatMap((entry, index) => {
    const refusal = refusalOfNames(entry, findChannel);
    const same = namesThatMeanTheSame(entry).map((name) => ({
      name: `channels.${index}.filters.${name}`,
      code: 'unique',
      reason: 'Another name here means the same.',
    }));
    if (!refusal) return same;
    return [{ name: `channels.${index}.${refusal.of}`, code: refusal.code, reason: refusal.reason }, ...same];
  });
  if (wrong.length > 0) throw new ValidationProblem(wrong.slice(0, mostInvalidParams));
}

function readCredentials(given: unknown, nowMs: number): CredentialChanges {
  try {
    return readCredentialChanges(given, nowMs);
  } catch (error) {
    if (!(error instanceof ValidationProblem)) throw error;
    const { invalidParams = [] } = error.extra;
    throw new ValidationProblem(invalidParams.map((param) => ({ ...param, name: `credentials.${param.name}` })));
  }
}

/** Names as another one before them, as they are compared. */
export function namesThatMeanTheSame({ filters }: SubscribedChannel): string[] {
  const known = new Set<string>();
  return Object.keys(filters).filter((name) => known.size === known.add(canonicalName(name)).size);
}

const required = (name: string) =>
  new ValidationProblem([{ name, code: 'required', reason: 'This field is required.' }]);
