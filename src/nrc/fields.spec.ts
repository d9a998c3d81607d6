import { describe, expect, it } from 'vitest';
import { FieldReader, isWebUrl, readText } from './fields.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';

const codeOf = (result: ReturnType<typeof readText>) => (typeof result === 'string' ? { text: result } : result.code);

describe('reading a text', () => {
  it.each([
    ['a text', 'naam', { text: 'naam' }],
    ['a text with space around it', ' \t naam \n', { text: 'naam' }],
    ['a number, as its digits', 5, { text: '5' }],
    ['a number with decimals', 1.5, { text: '1.5' }],
    ['the largest exact whole number', 2 ** 53 - 1, { text: '9007199254740991' }],
    ['a whole number that is no longer exact', 2 ** 53 + 2, 'invalid'],
    ['a number beyond all numbers', Infinity, 'invalid'],
    ['true', true, 'invalid'],
    ['a list', [], 'invalid'],
    ['an object', {}, 'invalid'],
    ['null', null, 'null'],
    ['nothing but space', '   ', 'blank'],
    ['U+0000', 'a\0b', 'invalid'],
    ['half a surrogate pair', 'a\ud800b', 'invalid'],
    ['a whole surrogate pair', '😀', { text: '😀' }],
  ])('%s', (_, value, expected) => {
    expect(codeOf(readText(value, { maxLength: 100 }))).toEqual(expected);
  });

  it('counts characters, not UTF-16 units', () => {
    expect(readText('😀😀😀', { maxLength: 3 })).toBe('😀😀😀');
    expect(codeOf(readText('😀😀😀😀', { maxLength: 3 }))).toBe('max_length');
  });

  it('counts bytes where what is stored has to fit an index', () => {
    expect(readText('éé', { maxBytes: 4 })).toBe('éé');
    expect(codeOf(readText('éé', { maxBytes: 3 }))).toBe('max_length');
  });

  it('accepts an empty text where that is allowed', () => {
    expect(readText(' ', { mayBeBlank: true })).toBe('');
  });
});

describe('web URLs', () => {
  it.each([
    'http://example.org',
    'https://example.org/a?b=c#d',
    'http://openzaak:8000/zaken/api/v1/zaken/1',
    'http://127.0.0.1:8001/webhook',
    'http://[::1]:8001/',
    'HTTP://EXAMPLE.ORG/',
    'https://xn--bcher-kva.example/é',
  ])('accept %s', (url) => {
    expect(isWebUrl(url)).toBe(true);
  });

  it.each([
    '',
    'example.org',
    '/relative',
    '//example.org/',
    'ftp://example.org/',
    'javascript:alert(1)',
    'http:example.org',
    'http://',
    'http:///path',
    'http://exa mple.org/',
    'http://example.org/a b',
    'http://example.org/\n',
    'http:\\\\example.org\\',
    'http://[::1',
    'http://example.org:99999/',
    'http://%zz/',
  ])('do not include %j', (url) => {
    expect(isWebUrl(url)).toBe(false);
  });
});

describe('reading fields', () => {
  const failures = (object: JsonObject, read: (fields: FieldReader) => unknown) => {
    const fields = new FieldReader(object);
    read(fields);
    return fields.invalidParams.map(({ name, code }) => `${name} ${code}`);
  };

  it('reads camelCase and snake_case; camelCase counts if both are there', () => {
    expect(new FieldReader({ resource_url: 'http://a/' }).url('resourceUrl')).toBe('http://a/');
    expect(new FieldReader({ resource_url: 'http://a/', resourceUrl: 'http://b/' }).url('resourceUrl')).toBe(
      'http://b/',
    );
  });

  it('names every wrong field at once', () => {
    const body = { b: null, c: '', d: 'no URL', e: 'list', f: ['x', null, ''], g: [] };
    const wrong = failures(body, (fields) => {
      fields.text('a');
      fields.text('b');
      fields.text('c');
      fields.url('d');
      fields.list('e');
      fields.textList('f');
      fields.dictionary('g');
    });
    expect(wrong).toEqual([
      'a required',
      'b null',
      'c blank',
      'd invalid',
      'e not_a_list',
      'f.1 null',
      'f.2 blank',
      'g not_a_dict',
    ]);
  });

  it('accepts an optional field that is absent, and refuses one that is null', () => {
    expect(failures({}, (fields) => fields.text('a', { isOptional: true }))).toEqual([]);
    expect(failures({ a: null }, (fields) => fields.text('a', { isOptional: true }))).toEqual(['a null']);
  });

  it('names the fields of nested objects by their path', () => {
    const wrong = failures({ kanalen: [{}, 'x', { naam: null }] }, (fields) =>
      fields.objects('kanalen')?.map((entry) => entry.text('naam')),
    );
    expect(wrong).toEqual(['kanalen.1.nonFieldErrors invalid', 'kanalen.0.naam required', 'kanalen.2.naam null']);
  });

  it('refuses a list or an object of more entries as a whole', () => {
    const body = { a: [null, null], b: [null], c: ['x', 'y'], d: { x: null, y: null }, e: { x: null } };
    const wrong = failures(body, (fields) => {
      fields.textList('a', { most: 1 });
      fields.textList('b', { most: 1 });
      fields.objects('c', { most: 1 });
      fields.dictionary('d', { most: 1 });
      fields.dictionary('e', { most: 1 });
    });
    expect(wrong).toEqual(['a max_length', 'b.0 null', 'c max_length', 'd max_length']);
  });

  it('stops collecting errors after the first fifty', () => {
    const wrong = failures({ a: Array.from({ length: 100_000 }, () => null) }, (fields) => fields.textList('a'));
    expect(wrong).toHaveLength(50);
  });
});
