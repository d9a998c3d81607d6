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
      .describe('Page that describes the events and their characteristics. May be empty.')
      .default(''),
    filters: z
      .array(
        z
          .string()
          .min(1)
          .max(longestFilterName)
          .describe('A name, such as `object_type`. camelCase and snake_case are the same name.'),
      )
      .max(mostFilters)
      .describe('Names of the characteristics a subscription can filter on. None: any name goes.')
      .default([]),
  })
  .meta({
    id: 'Kanaal',
    description: 'A channel to publish notificaties on, with the names that abonnementen can filter them on.',
  });

const { documentatieLink, filters } = kanaalSchema.shape;

/** The body of PATCH, by its name in the document of Open Notificaties: nothing is required, or has a default. */
export const patchedKanaalSchema = kanaalSchema
  .extend({ documentatieLink: documentatieLink.unwrap(), filters: filters.unwrap() })
  .partial()
  .meta({ id: 'PatchedKanaal', description: 'Changes of a kanaal. A field left out stays as it is.' });
