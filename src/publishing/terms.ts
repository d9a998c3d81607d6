import type { Deduplication } from '../channels/channel.js';
import { canonicalName } from '../channels/filter-names.js';
import { fingerprintOf } from '../request-keys/idempotency-key.js';
import type { OnceKey } from '../ledger/once-key.js';
import { clocksDifferByMs, type Misfit, type ParsedNotification } from './parse-notification.js';
import type { Terms } from './publication.js';

/** The part of the terms that comes from the publisher's request. */
export interface Asked {
  request: OnceKey | null;
  /** Milliseconds since 1970. */
  notBefore: number | null;
  /** As in `Terms`. */
  keepsPlace?: boolean;
  /**
   * A notification that may still be replaced is not de-duplicated: another one left out as its duplicate would be lost
   * when the content changes.
   */
  isReplaceable?: boolean;
}

/** The terms that the publisher asked for, with those of the channel's rules. */
export function termsOf(
  notification: ParsedNotification,
  { request, notBefore, keepsPlace = false, isReplaceable = false }: Asked,
): Terms {
  const { deduplication, maxAgeSeconds } = notification.channel;
  return {
    request,
    content: deduplication && !isReplaceable ? contentKeyOf(notification, deduplication) : null,
    notBefore,
    keepsPlace,
    expiresAt: maxAgeSeconds === null ? null : notification.createdAt + maxAgeSeconds * 1000,
  };
}

/**
 * An `aanmaakdatum` up to so far ahead is not waited for: it is past when the receiver looks, or no further ahead than
 * the error with which clocks are compared.
 */
const soonPastMs = 20;

/**
 * Until when a notification waits whose `aanmaakdatum` is passed although it lies a moment ahead: its receivers have
 * the same rule, some without that moment (commonground-api-common answers 400), and would cost it an attempt, and the
 * wait for the next one. A time further ahead was allowed by the operator (`TIME_LEEWAY`), who knows whether the
 * receivers allow it too.
 * @param nowMs milliseconds since 1970, by Postgres' clock
 * @returns milliseconds since 1970; null: it does not wait
 */
export function untilPast({ createdAt }: ParsedNotification, nowMs: number): number | null {
  const aheadMs = createdAt - nowMs;
  return aheadMs > soonPastMs && aheadMs <= clocksDifferByMs ? createdAt : null;
}

/**
 * Equal for notifications whose chosen fields are equal. An absent field equals only an absent one; a notification with
 * none of them has no duplicates.
 */
function contentKeyOf(notification: ParsedNotification, rule: Deduplication): OnceKey | null {
  const values = rule.fields.map((field) => [field, valueOf(notification, field) ?? null]);
  if (values.every(([, value]) => value === null)) return null;
  return {
    application: '',
    operation: 'deduplicate',
    key: `${notification.channel.name}:${fingerprintOf(JSON.stringify(values))}`,
    requestHash: null,
    keepSeconds: rule.withinSeconds,
  };
}

function valueOf(notification: ParsedNotification, field: string): string | undefined {
  switch (field) {
    case 'hoofdObject':
    case 'resource':
    case 'resourceUrl':
    case 'actie':
      return notification[field];
    default:
      return notification.characteristics.get(canonicalName(field.slice('kenmerken.'.length)));
  }
}

/**
 * Hashes what is sent on, without the order of its members: a publisher that makes the same notification anew may write
 * them in another one (JSON objects have none, RFC 8259 §4).
 */
export function requestHashOf({ body }: Misfit, notBefore: number | null): string {
  const { kenmerken, ...fields } = JSON.parse(body) as { kenmerken: object };
  return fingerprintOf(JSON.stringify([notBefore, byName(fields), byName(kenmerken)]));
}

const byName = (members: object): [name: string, value: unknown][] =>
  Object.entries(members).toSorted(([one], [other]) => (one < other ? -1 : 1));
