import * as z from 'zod';
import { ownUrl } from '../nrc/resource.js';
import { longestChannelName, longestDocumentationLink, longestFilterName, mostFilters } from './channel-limits.js';

/** A channel as the standard writes it; the document shows it, and `KanaalController` reads it field by field. */
export const kanaalSchema = z
  .object({
    url: ownUrl,
    naam: z.string().min(1).max(longestChannelName).describe('Unique; cannot be changed.'),
    documentatieLink: z
      .string()
      .max(longestDocumentationLink)
      .default('')
      .describe('Page that describes the events and their characteristics. May be empty.'),
    filters: z
      .array(
        z
          .string()
          .min(1)
          .max(longestFilterName)
          .describe('A name, such as `object_type`. camelCase and snake_case are the same name.'),
      )
      .max(mostFilters)
      .default([])
      .describe('Names of the characteristics a subscription can filter on. None: any name goes.'),
  })
  .meta({
    id: 'Kanaal',
    title: 'Kanaal',
    description: 'A channel to publish notificaties on, with the names that abonnementen can filter them on.',
  });
