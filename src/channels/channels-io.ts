import * as z from 'zod';
import { atMost } from '../infra/http/at-most.js';
import { storable } from '../infra/http/input-parts.js';
import { namePageOutput, namePageQuery } from '../infra/http/name-page.js';
import { hasCredentials, isWebUrl } from '../nrc/fields.js';
import { longestChannelName, longestDocumentationLink, longestFilterName, mostFilters } from './channel-limits.js';
import type { Channel } from './channel.js';

const week = 604_800;
const month = 2_592_000;
const year = 31_536_000;

/** A characteristic of this name; see `Deduplication`. */
const characteristic = /^kenmerken\.(.{1,100})$/u;

export const nameOfCharacteristic = (field: string): string | undefined => characteristic.exec(field)?.[1];

const field = z
  .string()
  .check(storable)
  .refine((text) => ['hoofdObject', 'resource', 'resourceUrl', 'actie'].includes(text) || characteristic.test(text), {
    error: 'Not one of hoofdObject, resource, resourceUrl, actie and kenmerken.<name>.',
  });

const withinSeconds = z.int().min(1).max(month);
const maxAgeSeconds = z.int().min(1).max(year);
const bodyRetentionDays = z.int().min(1).max(3650);

const shortText = (longest: number) => z.string().trim().max(longest).check(storable);

/** With the limits of a kanaal in the Notificaties API. */
const channelName = shortText(longestChannelName).min(1);
const documentationLink = shortText(longestDocumentationLink)
  .refine((link) => link === '' || isWebUrl(link), 'Not an absolute http or https URL.')
  .refine((link) => !isWebUrl(link) || !hasCredentials(link), 'Credentials do not belong in a URL.');
const filters = atMost(mostFilters, z.array(shortText(longestFilterName).min(1)).max(mostFilters));

export const channelChangesInput = z
  .strictObject({
    documentationLink: documentationLink.describe('A page that describes its notifications. May be empty.'),
    filters: filters.describe(
      'Names of the characteristics that a subscription can filter on, such as `object_type`; camelCase and snake_case are the same name. None: any name goes.',
    ),
    deduplication: z
      .strictObject({
        fields: z
          .array(field)
          .min(1)
          .max(50)
          .transform((fields) => [...new Set(fields)])
          .describe(
            '`hoofdObject`, `resource`, `resourceUrl`, `actie` or `kenmerken.<name>`: notifications in which all of these are equal are the same.',
          ),
        withinSeconds: withinSeconds
          .default(week)
          .describe('So long after the first one another counts as the same; default a week, at most 30 days.'),
      })
      .nullable()
      .describe('Which notifications are the same, so that only the first is delivered. null: none are.'),
    maxAgeSeconds: maxAgeSeconds
      .nullable()
      .describe('So long after its `aanmaakdatum` a notification is still sent. null: for ever.'),
    bodyRetentionDays: bodyRetentionDays
      .nullable()
      .describe(
        'So many days the bodies of its notifications are kept, those of before included; at most as long as RETENTION_DAYS keeps their rows. null: BODY_RETENTION_DAYS.',
      ),
  })
  .partial()
  .meta({ id: 'ChannelChanges' });

export const newChannelInput = channelChangesInput
  .extend({ name: channelName.describe('Unique; cannot be changed.') })
  .meta({ id: 'NewChannel' });

export const channelOutput = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    documentationLink: z.string(),
    filters: z.array(z.string()),
    deduplication: z.strictObject({ fields: z.array(z.string()), withinSeconds: z.int() }).nullable(),
    maxAgeSeconds: z.int().nullable(),
    bodyRetentionDays: z.int().nullable(),
  })
  .meta({ id: 'Channel' });

export const channelListQuery = namePageQuery('channels', 'id or name');

export const channelListOutput = z
  .strictObject({ channels: z.array(channelOutput), ...namePageOutput })
  .meta({ id: 'ChannelList' });

export function channelToShow(channel: Channel): z.output<typeof channelOutput> {
  const { id, name, documentationLink, filters, deduplication, maxAgeSeconds, bodyRetentionDays } = channel;
  return {
    id,
    name,
    documentationLink,
    filters: [...filters],
    deduplication: deduplication && { fields: [...deduplication.fields], withinSeconds: deduplication.withinSeconds },
    maxAgeSeconds,
    bodyRetentionDays,
  };
}
