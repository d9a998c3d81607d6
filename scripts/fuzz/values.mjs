/** @typedef {import('../random.mjs').Random} Random */
/** @typedef {import('./operations.mjs').Schema} Schema */

/** JSON that JSON.stringify does not write. */
export class RawJson {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

const longText = 'x'.repeat(5000);

/** The names of hosts end in `.invalid`: there is nobody who could be called. */
export const nastyTexts = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\u{d800}',
  'a\u{dfff}',
  '\r\n',
  '\r\nX-Injected: 1',
  '\t',
  '\u{7f}',
  '\u{feff}',
  '\u{202e}txt',
  'é',
  'é',
  '☃',
  '😀'.repeat(300),
  'İ',
  'ſ',
  'ﬀ',
  longText,
  'null',
  'undefined',
  'NaN',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '$ne',
  '%00',
  '%s%n',
  '{{7*7}}',
  '${1}',
  "' OR 1=1 --",
  '"; DROP TABLE delivery; --',
  '\\',
  '"',
  "'",
  '../../etc/passwd',
  '<script>alert(1)</script>',
  '-1',
  '0',
  '1e999',
  '9223372036854775808',
  '2147483648',
  '*',
  'http://',
  'https://',
  'http://[',
  'http://user:pass@host.invalid/',
  'http://host.invalid:99999/',
  'http://host.invalid\\@other.invalid/',
  'http://127.1/',
  'javascript:alert(1)',
  'file:///etc/passwd',
  '//host.invalid/',
  'https://xn--/',
  'https://é.invalid/☃?é#é',
  `https://host.invalid/${'p'.repeat(1980)}`,
  '2026-02-30T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
  '+275760-09-13T00:00:00Z',
  '2026-01-01',
  '2026-01-01T24:00:00Z',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'FFFFFFFF-FFFF-7FFF-BFFF-FFFFFFFFFFFF',
];

const nastyNumbers = [
  '0',
  '-0',
  '-1',
  '1.5',
  '1e-400',
  '1e308',
  '1e309',
  '-1e309',
  '2147483647',
  '2147483648',
  '-2147483649',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '1'.repeat(400),
  '0.1e1',
  '100000000000000000000000',
];

const deepList = (/** @type {number} */ depth) => new RawJson('['.repeat(depth) + ']'.repeat(depth));
const deepObject = (/** @type {number} */ depth) => new RawJson('{"a":'.repeat(depth) + '1' + '}'.repeat(depth));

/**
 * A value that has no right to be where it is put.
 * @param {Random} random
 * @returns {unknown}
 */
export function nastyValue(random) {
  return random.oneOf([
    () => random.oneOf(nastyTexts),
    () => random.oneOf(nastyTexts),
    () => new RawJson(random.oneOf(nastyNumbers)),
    () => null,
    () => true,
    () => false,
    () => [],
    () => ({}),
    () => [null],
    () => [[]],
    () => [random.oneOf(nastyTexts), 1, null, {}],
    () => ({ [random.oneOf(nastyTexts)]: random.oneOf(nastyTexts) }),
    () => new RawJson('{"__proto__":{"a":1},"constructor":{"prototype":{}}}'),
    () => new RawJson('{"a":1,"a":{"a":2},"a":[]}'),
    () => Array.from({ length: 200 }, (_, nr) => `v${nr}`),
    () => Object.fromEntries(Array.from({ length: 200 }, (_, nr) => [`n${nr}`, `v${nr}`])),
    () => deepList(random.oneOf([5, 100, 5000, 100_000])),
    () => deepObject(random.oneOf([5, 100, 5000, 50_000])),
    () => new RawJson('"\\ud800\\u0000\\uDFFF"'),
  ])();
}

/**
 * A value that fits the schema, as far as that is easily said: texts with a pattern fit it rarely.
 * @param {Schema} given
 * @param {Random} random
 * @param {(schema: Schema) => Schema} resolve
 * @param {(name: string) => string | undefined} known a text that was seen under that name
 * @param {string} [name]
 * @returns {unknown}
 */
export function fittingValue(given, random, resolve, known, name = '') {
  const schema = resolve(given);
  const one = schema.oneOf ?? schema.anyOf;
  if (one) return fittingValue(random.oneOf(one), random, resolve, known, name);
  if (schema.allOf) return fittingValue(schema.allOf[0], random, resolve, known, name);
  if ('const' in schema) return schema.const;
  if (schema.enum) return random.oneOf(schema.enum);
  if (schema.nullable && random.next() < 0.2) return null;
  switch (schema.type) {
    case 'object':
      return fittingObject(schema, random, resolve, known);
    case 'array': {
      const { minItems = 0, maxItems = 4 } = schema;
      const length = Math.min(maxItems, minItems + Math.floor(random.next() * 3));
      return Array.from({ length }, () => fittingValue(schema.items ?? {}, random, resolve, known, name));
    }
    case 'integer':
      return Math.round(numberWithin(schema, random));
    case 'number':
      return numberWithin(schema, random);
    case 'boolean':
      return random.next() < 0.5;
    default:
      return fittingText(schema, random, known, name);
  }
}

/**
 * @param {Schema} schema
 * @param {Random} random
 * @param {(schema: Schema) => Schema} resolve
 * @param {(name: string) => string | undefined} known
 */
function fittingObject(schema, random, resolve, known) {
  const { properties = {}, required = [], additionalProperties } = schema;
  const wanted = Object.entries(properties).filter(
    ([name, property]) => !property.readOnly && (required.includes(name) || random.next() < 0.6),
  );
  const fields = wanted.map(([name, property]) => [name, fittingValue(property, random, resolve, known, name)]);
  if (typeof additionalProperties === 'object' && random.next() < 0.5)
    fields.push([known('filter') ?? 'kind', fittingValue(additionalProperties, random, resolve, known)]);
  return Object.fromEntries(fields);
}

/**
 * @param {Schema} schema
 * @param {Random} random
 */
function numberWithin({ minimum = 0, maximum = minimum + 1000 }, random) {
  return random.oneOf([minimum, maximum, random.between(minimum, Math.min(maximum, minimum + 50))]);
}

/**
 * @param {Schema} schema
 * @param {Random} random
 * @param {(name: string) => string | undefined} known
 * @param {string} name
 */
function fittingText({ format, minLength = 0, maxLength = 30 }, random, known, name) {
  const seen = random.next() < 0.7 ? known(name) : undefined;
  if (seen !== undefined) return seen;
  switch (format) {
    case 'uri':
      return `${known('uri')}${Math.floor(random.next() * 5)}`;
    case 'uuid':
      return uuid(random);
    case 'date-time':
      return new Date(Math.floor(random.between(0, 2e12))).toISOString();
    default: {
      const length = random.oneOf([minLength, Math.min(maxLength, minLength + 8), maxLength > 3000 ? 30 : maxLength]);
      return Math.floor(random.next() * 1e9)
        .toString(36)
        .padEnd(length, 'z')
        .slice(0, Math.max(length, 1));
    }
  }
}

/** @param {Random} random */
export function uuid(random) {
  const hex = Array.from({ length: 32 }, () => Math.floor(random.next() * 16).toString(16)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/**
 * @param {unknown} value
 * @returns {string}
 */
export function toJson(value) {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}:${toJson(each)}`)
      .join(',')}}`;
  return JSON.stringify(value) ?? 'null';
}

/** As a part of a URL: each byte of its UTF-8. */
export const encode = (/** @type {string} */ text) =>
  Buffer.from(text)
    .toString('latin1')
    .replace(/[^\w.~-]/g, percent);
const percent = (/** @type {string} */ character) =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
/** The characters that HTTP lets a header hold. */
export const asHeader = (/** @type {string} */ text) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').slice(0, 2000);
