/** Control characters but the end of a line, and those that change the direction of text. */
// eslint-disable-next-line no-control-regex
export const unprintable = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Shows those characters as JSON and YAML have them in double quotes. */
export const escapeUnprintable = (text: string): string =>
  text.replaceAll(unprintable, (character) =>
    character === '\t' ? String.raw`\t` : String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
