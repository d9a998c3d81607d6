import { describe, expect, it, vi } from 'vitest';
import { cleanerOf, withoutSecret } from './without-secret.js';

const eachOf = (text: string, escape: (character: string) => string): string =>
  text.replaceAll(/[^A-Za-z0-9]/g, escape);
const code = (character: string): number => character.charCodeAt(0);
const hex = (character: string, length: number): string => code(character).toString(16).padStart(length, '0');

/** As those who answer write what they repeat. */
const encoders: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  'in capitals': (text) => text.toUpperCase(),
  'as JSON': (text) => JSON.stringify(text).slice(1, -1),
  'as JSON by PHP': (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replaceAll('/', String.raw`\/`),
  'as JSON by .NET': (text) => eachOf(text, (each) => `\\u${hex(each, 4).toUpperCase()}`),
  'as JSON, every letter': (text) => text.replaceAll(/[^]/g, (each) => `\\u${hex(each, 4)}`),
  'as bytes of Python': (text) => eachOf(text, (each) => `\\x${hex(each, 2)}`),
  'in a URL': (text) => encodeURIComponent(text),
  'in a URL, by its bytes': (text) => eachOf(text, (each) => `%${hex(each, 2)}`),
  'in a form': (text) => new URLSearchParams({ a: text }).toString().slice(2),
  'in HTML': (text) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;'),
  'in HTML, by names': (text) =>
    text.replaceAll('&', '&amp;').replaceAll('+', '&plus;').replaceAll('/', '&sol;').replaceAll('=', '&equals;'),
  'in HTML, by numbers': (text) => eachOf(text, (each) => `&#${code(each)};`),
  'in HTML, by numbers of 16': (text) => eachOf(text, (each) => `&#x${hex(each, 1)};`),
};
const inBase64 = (text: string) => Buffer.from(text, 'latin1').toString('base64');

const secrets = [
  'Bearer abc/def+ghi=jkl_m-n.op',
  String.raw`a "quoted" back\slash & <more>`,
  'percent%2Fand%25 &amp; \\u0041 raw',
  'latin é and ü, 100 %',
  `${'\\'.repeat(40)} '"`,
];

describe('a text without a secret', () => {
  const each = secrets.flatMap((secret) =>
    Object.entries(encoders).flatMap(([one, inner]) =>
      Object.entries(encoders).map(([other, outer]) => [secret, one, other, outer(inner(secret))] as const),
    ),
  );
  it.each(each)('has it no more: %s, %s, and that %s', (secret, _, __, echoed) => {
    expect(withoutSecret(`[${echoed}]`, [secret])).toBe('[[secret]]');
  });

  it.each(secrets)('has it no more in Base64, by itself or as a part: %s', (secret) => {
    for (const before of ['', 'a', 'ab', 'abc', 'Authorization: ']) {
      const text = `<${inBase64(`${before}${secret}, and more`)}>`;
      for (const echoed of [
        text,
        text.replaceAll('+', '-').replaceAll('/', '_'),
        text.replaceAll('/', String.raw`\/`),
      ]) {
        const clean = withoutSecret(echoed, [secret]);
        expect(clean).toContain('[secret]');
        // Of a neighbour's byte and the secret's together there is a character left at most.
        const left = Buffer.from(clean.slice(1, clean.indexOf('[')), 'base64').toString('latin1');
        expect(before).toContain(left.slice(0, before.length));
        expect(left.length).toBeLessThanOrEqual(before.length + 1);
      }
    }
    expect(withoutSecret(`<${inBase64(secret)}>`, [secret])).toMatch(/^<\[secret\]=*>$/);
  });

  it('has no beginning of it either where the text was cut off, also within an escape', () => {
    const secret = 'abcdefgh/ijk';
    for (const cut of [
      'abcdefgh',
      'abcdefgh/',
      'abcdefgh\\',
      'abcdefgh\\u00',
      'abcdefgh%2',
      'abcdefgh&#4',
      'abcdefgh%2fij',
    ])
      expect(withoutSecret(`got ${cut}`, [secret])).toBe('got [secret]');
    expect(withoutSecret('got abcdefg', [secret])).toBe('got abcdefg');
    expect(withoutSecret('got abcdefgh and more', [secret])).toBe('got abcdefgh and more');
  });

  it('has it no more among letters of which some become two in lower case', () => {
    expect(withoutSecret('İİİ ABCDEFGH İ', ['abcdefgh'])).toBe('İİİ [secret] İ');
  });

  it('says for several of them, one within another, that there was one', () => {
    const text = 'Bearer abcdefgh.ijkl, abcdefgh.ijkl and another-one';
    expect(withoutSecret(text, ['abcdefgh.ijkl', 'Bearer abcdefgh.ijkl', 'another-one'])).toBe(
      '[secret], [secret] and [secret]',
    );
  });

  it('is as it was where there is none, and where one is too short to be told from a word', () => {
    const text = String.raw`nothing \u0041 %41 &amp; &unknown; &#99999999; \q here %`;
    expect(withoutSecret(text, ['something else', 'here', ''])).toBe(text);
    expect(withoutSecret('', ['something else'])).toBe('');
    expect(withoutSecret(text, [])).toBe(text);
  });

  it('is left out where there are too many secrets like it, and looked at a bounded number of times', () => {
    const many = Array.from({ length: 50 }, (_, nr) => `${'\\'.repeat(20)}${nr}`);
    const looks = vi.spyOn(String.prototype, 'indexOf');
    const clean = cleanerOf(many);
    const cleaned = Array.from({ length: 20 }, () => clean('\\'.repeat(4000)));
    const times = looks.mock.calls.filter(([searched]) => searched.length === 8).length;
    looks.mockRestore();
    expect(cleaned.at(-1)).toMatch(/^\[left out: /);
    expect(times).toBeGreaterThan(50);
    // Two million steps, of which each look in the innermost text takes 500.
    expect(times).toBeLessThan(4000);
    expect(withoutSecret('and others are not', ['are not here'])).toBe('and others are not');
  });

  it('is brought into its forms once, however often it is looked for', () => {
    const secret = 'a secret that no other test has';
    const forms = vi.spyOn(Buffer, 'from');
    for (let times = 0; times < 3; times++) expect(withoutSecret(`<${secret}>`, [secret])).toBe('<[secret]>');
    expect(forms).toHaveBeenCalledTimes(1);
    forms.mockRestore();
  });

  it('is found at once, whatever a receiver that knows the secret answers', () => {
    const [slashes, as] = ['\\'.repeat(4000), 'a'.repeat(4000)];
    expect(withoutSecret(`${as}c`, [`${as.slice(0, 3000)}b`])).toBe(`${as}c`);
    expect(withoutSecret(`${slashes}c`, [`${slashes.slice(0, 3000)}b`])).toBe(`${slashes}c`);
    expect(withoutSecret(`%25`.repeat(1500), [`${'%25'.repeat(500)}b`])).toBe(`${'%25'.repeat(1000)}[secret]`);
  });
});
