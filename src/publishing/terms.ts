import { createHash } from 'node:crypto';
import type { Channel } from '../channels/channel.js';
import { canonicalName } from '../channels/filter-names.js';
import type { ParsedNotification } from './parse-notification.js';
import type { ContentKey, RequestKey, Terms } from './publication.js';

interface Asked {
  request?: RequestKey;
  /** Milliseconds since 1970. */
  notBefore?: number;
}

/** What the publisher asked for and what the channel's rules add; undefined when it is simply to be sent now. */
export function termsOf(notification: ParsedNotification, { request, notBefore }: Asked): Terms | undefined {
  const { deduplication, maxAgeSeconds } = notification.channel;
  if (!request && notBefore === undefined && !deduplication && maxAgeSeconds === null) return undefined;
  return {
    request,
    notBefore,
    content: deduplication ? contentKeyOf(notification, deduplication) : undefined,
    expiresAt: maxAgeSeconds === null ? undefined : notification.createdAt + maxAgeSeconds * 1000,
  };
}

/** Equal for notifications whose chosen fields are equal. An absent field equals only an absent one. */
function contentKeyOf(notification: ParsedNotification, rule: NonNullable<Channel['deduplication']>): ContentKey {
  const values = rule.fields.map((field) => [field, valueOf(notification, field) ?? null]);
  return { key: `${notification.channel.name}:${hash(JSON.stringify(values))}`, keepSeconds: rule.withinSeconds };
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
  return hash(`${notBefore ?? ''}\n${notification.body}`);
}

const hash = (text: string): string => createHash('sha256').update(text).digest('base64url');
