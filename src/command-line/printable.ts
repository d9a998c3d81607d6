/**
 * Control characters, and those that change the direction of text. Operators are shown texts of receivers and
 * publishers (errors, URLs, bodies): as it is, such a text could move the cursor, change what was printed before, or
 * set the title of the window.
 */
// eslint-disable-next-line no-control-regex
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** One line of text that shows those characters as JSON would write them. */
export const printable = (text: string): string =>
  text.replaceAll(unprintable, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

/** The same with its lines kept. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');
