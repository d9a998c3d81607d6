/** Whether Postgres can store a text: it has no U+0000, and half a surrogate pair has no UTF-8. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** Of one that it cannot store. */
export const unstorable = 'Contains U+0000 or half a surrogate pair.';

/**
 * As much of a receiver's text as Postgres can store. It could send the rest to keep its failures out of the ledger; a
 * cut may leave half a surrogate pair.
 */
export const storableText = (text: string): string => text.replaceAll('\0', '').replaceAll(/\p{Surrogate}/gu, '\ufffd');
