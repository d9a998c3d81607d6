import * as z from 'zod';

// 1 to 255 printable ASCII characters that are not all spaces: bare, or as a quoted string (RFC 8941 §3.3.3), in which
// each `"` and `\` is written as two.
const bare = String.raw`[!#-~]([ -~]{0,253}[!-~])?`;
const quoted = String.raw`"(?! *"$)([ !#-\[\]-~]|\\["\\]){1,255}"`;
const longest = 2 + 2 * 255;

/** The request header, as readIdempotencyKey accepts it (src/request-keys/idempotency-key.ts). */
export const idempotencyKeyHeader = z
  .string()
  .min(1)
  .max(longest)
  .regex(new RegExp(`^(${bare}|${quoted})$`))
  .optional()
  .describe(
    'However often the request is repeated under the same key, it is carried out once. 1 to 255 printable ASCII characters, quoted or bare; another application may use the same.',
  );

export const pathKey = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[ -~]*[!-~][ -~]*$/);

/** Of an operation that makes a resource which can be deleted. */
export const deletedMeanwhile =
  '`deleted-meanwhile`: the resource that the first request with this key made was deleted. Nothing was done.';

/** The header of an answer. */
export const replayedHeader = z
  .enum(['true'])
  .optional()
  .describe('The same request was made before under this key: nothing was done now.');
