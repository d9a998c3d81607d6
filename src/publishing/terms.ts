import type { Deduplication } from '../channels/channel.js';
import { canonicalName } from '../channels/filter-names.js';
import { fingerprintOf } from '../infra/http/idempotency-key.js';
import type { ParsedNotification } from './parse-notification.js';
import type { ContentKey, RequestKey, Terms } from './publication.js';

interface Asked {
  request?: RequestKey;
  /** Milliseconds since 1970. */
  notBefore?: number;
  /**
   * What may still be replaced takes no part in de-duplication: another that was left out as its duplicate would be lost
   * when the content changes.
   */
  isReplaceable?: boolean;
}

/** What the publisher asked for and what the channel's rules add; undefined when it is simply to be sent now. */
export function termsOf(
  notification: ParsedNotification,
  { request, notBefore, isReplaceable = false }: Asked,
): Terms | undefined {
  const { deduplication, maxAgeSeconds } = notification.channel;
  if (!request && notBefore === undefined && !deduplication && maxAgeSeconds === null) return undefined;
  return {
    request,
    notBefore,
    content: deduplication && !isReplaceable ? contentKeyOf(notification, deduplication) : undefined,
    expiresAt: maxAgeSeconds === null ? undefined : notification.createdAt + maxAgeSeconds * 1000,
  };
}

/**
 * Equal for notifications whose chosen fields are equal. An absent field equals only an absent one; a notification that has
 * none of them is like no other.
 */
function contentKeyOf(notification: ParsedNotification, rule: Deduplication): ContentKey | undefined {
  const values = rule.fields.map((field) => [field, valueOf(notification, field) ?? null]);
  if (values.every(([, value]) => value === null)) return undefined;
  return {
    key: `${notification.channel.name}:${fingerprintOf(JSON.stringify(values))}`,
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

/** Of the notification as it was understood: the same content in another layout is the same request. */
export function requestHashOf(notification: ParsedNotification, notBefore: number | undefined): string {
  return fingerprintOf(`${notBefore ?? ''}\n${notification.body}`);
}
