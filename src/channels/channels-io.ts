import { z } from 'zod';
import type { Channel } from './channel.js';

const week = 604_800;
const month = 2_592_000;
const year = 31_536_000;

/** A characteristic of this name; see `Deduplication`. */
const characteristic = /^kenmerken\.(.{1,100})$/u;

export const nameOfCharacteristic = (field: string): string | undefined => characteristic.exec(field)?.[1];

const field = z
  .string()
  .refine((text) => ['hoofdObject', 'resource', 'resourceUrl', 'actie'].includes(text) || characteristic.test(text), {
    error: 'Not one of hoofdObject, resource, resourceUrl, actie and kenmerken.<name>.',
  });

const withinSeconds = z.int().min(1).max(month);
const maxAgeSeconds = z.int().min(1).max(year);
const bodyRetentionDays = z.int().min(1).max(3650);

export const channelChangesInput = z
  .strictObject({
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

export const channelListOutput = z.strictObject({ channels: z.array(channelOutput) }).meta({ id: 'ChannelList' });

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
