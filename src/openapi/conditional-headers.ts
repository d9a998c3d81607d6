import { z } from 'zod';

/** Of an answer that shows a resource. */
export const entityTagHeader = z.object({
  ETag: z.string().describe('Of this state of it: for the `If-Match` of a change.'),
});

/** Of a request that changes one. */
export const ifMatchHeader = z.object({
  'If-Match': z
    .string()
    .optional()
    .describe(
      'The `ETag` that it was read with. Where it was changed since, nothing is done. Left out: it is not asked.',
    ),
});

/** The problem of such a request. */
export const changedMeanwhile = { 412: '`changed-meanwhile`: it is in another state than `If-Match` names.' };
