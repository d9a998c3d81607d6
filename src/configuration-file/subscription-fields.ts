import type { RetryPolicyOverride } from '../retry-policy/policy-input.js';
import type { SubscriptionEntity } from '../subscriptions/subscription.entity.js';
import type { ConfiguredSubscription } from './configuration-schema.js';
import type { Shown } from './fields-that-differ.js';

/** The fields that `SubscriptionChanges.set` changes. */
export const settings = [
  'ownerClientId',
  'channels',
  'deliveryGuarantee',
  'timeoutSeconds',
  'maxConcurrency',
  'ratePerSecond',
  'ordering',
  'alertEmail',
] as const;

export type Fields = Pick<SubscriptionEntity, (typeof settings)[number] | 'callbackUrl'>;

export const fieldsOfNew = (ownerClientId: string): Fields => ({
  ownerClientId,
  callbackUrl: '',
  channels: [],
  deliveryGuarantee: null,
  timeoutSeconds: null,
  maxConcurrency: null,
  ratePerSecond: null,
  ordering: 'none',
  alertEmail: null,
});

/** A field that the configuration leaves out stays as it is, but for the address that another owner has left. */
export function fieldsAfter(before: Fields, wanted: ConfiguredSubscription): Fields {
  const of = <Name extends keyof Fields>(name: Name): Fields[Name] =>
    wanted[name] === undefined ? before[name] : (wanted[name] as Fields[Name]);
  const ownerClientId = of('ownerClientId');
  const isSameOwner = ownerClientId === before.ownerClientId;
  return {
    ownerClientId,
    callbackUrl: of('callbackUrl'),
    channels: of('channels'),
    deliveryGuarantee: of('deliveryGuarantee'),
    timeoutSeconds: of('timeoutSeconds'),
    maxConcurrency: of('maxConcurrency'),
    ratePerSecond: of('ratePerSecond'),
    ordering: of('ordering'),
    // Without one of its own, the new owner is told at the address of its application.
    alertEmail: isSameOwner ? of('alertEmail') : (wanted.alertEmail ?? null),
  };
}

/** @param fields others beside them are not shown: a row has all of its columns */
export const showFields = (fields: Fields, isPaused: boolean, retryPolicy: RetryPolicyOverride | null): Shown => ({
  fields: {
    callbackUrl: fields.callbackUrl,
    ...Object.fromEntries(settings.map((name) => [name, fields[name]])),
    isPaused,
    retryPolicy,
  },
  secrets: {},
});
