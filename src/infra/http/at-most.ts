import * as z from 'zod';

/**
 * A list or a record of at most so many entries, which are counted before any of them is looked at: a megabyte holds
 * hundreds of thousands, and zod's own limits come only after it has described each wrong one. Nor may a record have
 * the name `__proto__`: zod leaves that out without a word, and whoever asked for it would get something else.
 */
export const atMost = <Schema extends z.ZodType>(most: number, schema: Schema) =>
  // By itself a `preprocess` would make the field one that may be left out.
  z.nonoptional(
    z.preprocess((input, context) => {
      if (typeof input !== 'object' || input === null) return input;
      const isList = Array.isArray(input);
      if (!isList && Object.hasOwn(input, '__proto__')) {
        context.addIssue({ code: 'custom', path: ['__proto__'], input, message: 'Not a name that can be used here.' });
        return z.NEVER;
      }
      if ((isList ? input.length : Object.keys(input).length) <= most) return input;
      context.addIssue({
        code: 'too_big',
        origin: isList ? 'array' : 'record',
        maximum: most,
        input,
        message: `More than ${most} entries.`,
      });
      return z.NEVER;
    }, schema),
  );
