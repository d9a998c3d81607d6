import type { HeaderList } from './response-with-headers.js';

/** The additions of an API to plain HTTP. The server knows no API, so it gets them as a parameter. */
export interface Dialect {
  /** Names and values, in turn, of the headers that every answer to this URL has; the spelling of the names is kept. */
  headersOf(url: string): HeaderList;
  /** Path of the page that explains a type of problem. */
  problemPage(type: string): string;
  /** The same for every problem of a type (RFC 9457 §3.1.3). */
  problemTitle(type: string): string;
  /** Stands in place of a field's name where the input as a whole is wrong. */
  wholeInput: string;
}
