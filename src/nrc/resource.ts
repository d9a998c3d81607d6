import * as z from 'zod';

/** The field `url` of every resource. */
export const ownUrl = z
  .url()
  .min(1)
  .max(1000)
  .optional()
  .meta({ readOnly: true, description: 'Where this resource lives. Given by the server.' });

/** Of an operation of an abonnement that the standard does not know. */
export const beyondTheStandard = 'Beyond the standard. Only for the creator of the abonnement, or a superuser.';

export const uuidPath = z.object({
  uuid: z.string().meta({ format: 'uuid' }).describe('The last part of the `url` of the resource (UUID version 4).'),
});

export const locationHeader = z.object({ Location: z.url().describe('Its url.') });
