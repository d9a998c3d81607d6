import { isUtf8 } from 'node:buffer';

const decoder = new TextDecoder();

/**
 * The text of a file that somebody has written, without the mark that some editors and shells put in front. Other bytes
 * than UTF-8 would become characters that nobody wrote, and a secret that nobody knows.
 * @throws {Error} where it is none; it has no bytes of the file in it
 */
export function textOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8');
  return decoder.decode(bytes);
}
