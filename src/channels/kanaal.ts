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
      .optional()
      .describe(
        'Page that describes the events and their characteristics. May be empty, as it is where POST leaves it out.',
      ),
    filters: z
      .array(
        z
          .string()
          .min(1)
          .max(longestFilterName)
          .describe('A name, such as `object_type`. camelCase and snake_case are the same name.'),
      )
      .max(mostFilters)
      .optional()
      .describe(
        'Names of the characteristics a subscription can filter on. None, as where POST leaves it out: any name goes.',
      ),
  })
  .meta({
    id: 'Kanaal',
    description: 'A channel to publish notificaties on, with the names that abonnementen can filter them on.',
  });

/** The body of PATCH, by its name in the document of Open Notificaties: nothing is required. */
export const patchedKanaalSchema = kanaalSchema
  .partial()
  .meta({ id: 'PatchedKanaal', description: 'Changes of a kanaal. A field left out stays as it is.' });
