import { format } from 'oxfmt';
import style from '../oxfmt.config.mjs';

/**
 * As `npm run format` would write it.
 * @param {string} file its name says the language
 * @param {string} text
 * @returns {Promise<string>}
 * @throws {Error} where it is not of that language
 */
export async function formatted(file, text) {
  const { ignorePatterns: _, ...options } = style;
  const { code, errors } = await format(file, text, options);
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  return code;
}
