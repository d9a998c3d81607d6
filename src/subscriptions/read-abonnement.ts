import type { Channel } from '../channels/channel.js';
import { areNamesConsistent, canonicalName, listedNames } from '../channels/filter-names.js';
import { mailAddress } from '../config/setting-types.js';
import { headerValue } from '../credentials/check-headers.js';
import { maxAuthLength, readCredentialChanges, type CredentialChanges } from '../credentials/credentials-io.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { isStorable } from '../infra/postgres/storable-text.js';
import { hasCredentials, isLonger, readText, tooLong, type FieldReader } from '../nrc/fields.js';
import { deliveryGuarantees, type DeliveryGuarantee, type SubscribedChannel } from './subscription.js';
import type { SubscriptionInput } from './subscription-changes.js';
import {
  longestCallbackUrl,
  longestDemandedName,
  longestDemandedValue,
  mostDemands,
  mostEntries,
} from './subscription-limits.js';

export type FindChannel = (name: string) => Channel | undefined;

/**
 * The abonnement that a POST or PUT describes. A field beyond the standard, left out by a client that does not know it,
 * is undefined.
 * @param nowMs milliseconds since 1970, by the ledger's clock: a certificate that has ended is refused
 * @throws {ValidationProblem}
 */
export function readAbonnement(fields: FieldReader, findChannel: FindChannel, nowMs: number): SubscriptionInput {
  const changes = readChanges(fields, findChannel, { isPartial: false, nowMs });
  const { callbackUrl = '', auth = '', channels = [], deliveryGuarantee, credentials, alertEmail } = changes;
  return { callbackUrl, auth, channels, deliveryGuarantee, credentials, alertEmail };
}

/**
 * The fields of an abonnement that were sent.
 * @throws {ValidationProblem}
 */
export function readChanges(
  fields: FieldReader,
  findChannel: FindChannel,
  { isPartial, nowMs }: { isPartial: boolean; nowMs: number },
): Partial<SubscriptionInput> {
  const callbackUrl = fields.url('callbackUrl', { maxBytes: longestCallbackUrl, isOptional: isPartial });
  if (callbackUrl !== undefined && hasCredentials(callbackUrl)) {
    fields.refuse('callbackUrl', 'invalid', 'Credentials belong in auth, not in the URL.');
  }
  const auth = fields.text('auth', { maxLength: maxAuthLength, isOptional: isPartial });
  if (auth !== undefined && !headerValue.test(auth)) {
    fields.refuse('auth', 'invalid', 'Holds a character that cannot be sent in a header.');
  }
  const deliveryGuarantee = readGuarantee(fields);
  const credentials = readCredentials(fields, nowMs);
  const alertEmail = readAlertEmail(fields);
  refuseCloudEvents(fields);
  const channels = readChannels(fields);
  if (fields.invalidParams.length > 0) throw new ValidationProblem(fields.invalidParams);
  for (const [index, entry] of channels?.entries() ?? []) checkNames(entry, index, findChannel);
  return { callbackUrl, auth, channels, deliveryGuarantee, credentials, alertEmail };
}

/** An addition of ours to the standard. Null: as its owner's other subscriptions. */
function readGuarantee(fields: FieldReader): DeliveryGuarantee | null | undefined {
  if (fields.raw('deliveryGuarantee') === null) return null;
  const text = fields.text('deliveryGuarantee', { isOptional: true });
  const guarantee = deliveryGuarantees.find((one) => one === text);
  if (text !== undefined && !guarantee) {
    fields.refuse('deliveryGuarantee', 'invalid', `Not one of ${deliveryGuarantees.join(', ')}.`);
  }
  return guarantee;
}

/** An addition of ours to the standard. Null: none. */
function readAlertEmail(fields: FieldReader): string | null | undefined {
  if (fields.raw('alertEmail') === null) return null;
  const text = fields.text('alertEmail', { isOptional: true });
  if (text === undefined || mailAddress.safeParse(text).success) return text;
  fields.refuse('alertEmail', 'invalid', 'Not a mail address.');
  return undefined;
}

/**
 * An addition of Open Notificaties that there is not here. A receiver that was promised CloudEvents cannot read
 * notificaties, so its abonnement is refused, in place of one of which every delivery fails. Clients that only send the
 * default back get theirs.
 */
function refuseCloudEvents(fields: FieldReader): void {
  const value = fields.raw('sendCloudevents') ?? false;
  if (value === false) return;
  fields.refuse('sendCloudevents', 'invalid', 'CloudEvents are not supported: leave it out, or send false.');
}

/** An addition of ours to the standard, as the admin API has it. */
function readCredentials(fields: FieldReader, nowMs: number): CredentialChanges | undefined {
  const value = fields.raw('credentials');
  if (value === undefined) return undefined;
  try {
    return readCredentialChanges(value, nowMs);
  } catch (error) {
    if (!(error instanceof ValidationProblem)) throw error;
    for (const { name, code, reason } of error.extra.invalidParams ?? [])
      fields.refuse(name === '' ? 'credentials' : `credentials.${name}`, code, reason);
    return undefined;
  }
}

function readChannels(fields: FieldReader): SubscribedChannel[] | undefined {
  return fields.objects('kanalen', { most: mostEntries, isOptional: true })?.map((entry) => ({
    channel: entry.text('naam') ?? '',
    filters: readFilters(entry),
  }));
}

/** If several names have the same canonical form, the last one counts. */
function readFilters(entry: FieldReader): Record<string, string> {
  const filters = new Map<string, [name: string, value: string]>();
  const given = entry.dictionary('filters', { most: mostDemands, isOptional: true }) ?? {};
  for (const [name, value] of Object.entries(given)) {
    const isTooLong = isLonger(name, longestDemandedName);
    const text = entry.accept(
      `filters.${name}`,
      isTooLong ? tooLong(longestDemandedName) : readText(value, { maxLength: longestDemandedValue }),
    );
    if (!isStorable(name)) entry.refuse('filters', 'invalid', 'A name holds U+0000 or half a surrogate pair.');
    if (text !== undefined) filters.set(canonicalName(name), [name, text]);
  }
  return Object.fromEntries(filters.values());
}

/** The fields are named as older clients know them, without the index; the reason names the entry. */
function checkNames({ channel, filters }: SubscribedChannel, index: number, findChannel: FindChannel): void {
  const refusal = refusalOfNames({ channel, filters }, findChannel);
  if (!refusal) return;
  const reason = `kanalen.${index} (${channel.slice(0, 50)}): ${refusal.reason}`;
  throw new ValidationProblem([{ name: refusal.of === 'channel' ? 'naam' : 'filters', code: refusal.code, reason }]);
}

/** Why a subscription cannot be about this channel with these filters. */
export function refusalOfNames(
  { channel: name, filters }: SubscribedChannel,
  findChannel: (name: string) => Pick<Channel, 'filters' | 'canonicalFilters'> | undefined,
): { of: 'channel' | 'filters'; code: string; reason: string } | undefined {
  const channel = findChannel(name);
  if (!channel) return { of: 'channel', code: 'kanaal_naam', reason: 'there is no such kanaal.' };
  const names = new Set(Object.keys(filters).map(canonicalName));
  if (areNamesConsistent(names, channel.canonicalFilters)) return undefined;
  const reason = `the names do not fit the filters of the kanaal (${listedNames(channel.filters)}).`;
  return { of: 'filters', code: 'inconsistent-abonnement-filters', reason };
}
