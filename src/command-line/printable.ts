import { escapeUnprintable } from '../infra/unprintable.js';

/*
 * Operators are shown texts of receivers and publishers (errors, URLs, bodies): as it is, such a text could move the
 * cursor, change what was printed before, or set the title of the window.
 */

/** One line of text that shows the characters that do so as JSON would write them. */
export const printable = (text: string): string => printableLines(text).replaceAll('\n', '\\n');

/** The same with its lines kept. */
export const printableLines = escapeUnprintable;
