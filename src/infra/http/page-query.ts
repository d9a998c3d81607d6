import * as z from 'zod';

/**
 * The parameters of a list that is read page by page.
 * @param things in the list, for the description
 * @param fromCursor undefined: the text is no cursor of this list
 * @param withoutLimit of a list that is no pages of 50 then: what a caller gets who gives none, for the description
 */
export const pageQuery = <Key>(
  things: string,
  fromCursor: (text: string) => Key | undefined,
  withoutLimit?: string,
) => ({
  limit: z
    .string()
    .regex(/^\d{1,9}$/, 'Must be a whole number from 1 to 500.')
    .transform(Number)
    .pipe(z.int().min(1).max(500))
    .optional()
    .meta({
      type: 'integer',
      pattern: undefined,
      minimum: 1,
      maximum: 500,
      default: withoutLimit === undefined ? 50 : undefined,
    })
    .describe([`Most ${things} in one page.`, ...(withoutLimit === undefined ? [] : [withoutLimit])].join(' ')),
  cursor: cursorInput(fromCursor),
});

/**
 * @param fromCursor undefined: the text is no cursor of this list
 * @param text its limits
 */
export const cursorInput = <Key>(fromCursor: (text: string) => Key | undefined, text = z.string()) =>
  text
    .transform((given, context) => {
      const key = fromCursor(given);
      if (!key) context.addIssue({ code: 'custom', message: 'Is not the nextCursor of a page.', input: given });
      return key;
    })
    .optional()
    .describe('The `nextCursor` of the page before.');

/** Of a page. */
export const nextCursor = z.string().nullable().describe('Where the list goes on; null at its end.');
