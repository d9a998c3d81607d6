import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const sources = fileURLToPath(new URL('../web/src/', import.meta.url));
const list = readFileSync(new URL('../web/src/i18n/dutch.md', import.meta.url), 'utf8');
const rows = [...list.matchAll(/^\| (.+?) +\| (.+?) +\|(.*)\|$/gm)]
  .map(([, english, dutch, not]) => ({
    english: english!,
    dutch: dutch!,
    not: not!
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
  }))
  .filter(({ english }) => english !== 'English' && !english.startsWith('-'));
const texts = readdirSync(sources, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.spec.ts'))
  .map((name) => ({ name, text: readFileSync(`${sources}${name}`, 'utf8') }));

describe('the Dutch of the console', () => {
  it('has a word for each idea', () => {
    expect(rows.length).toBeGreaterThan(30);
    expect(texts.length).toBeGreaterThan(100);
  });

  it.each(rows.filter(({ not }) => not.length > 0))('calls $english “$dutch”, and nothing else', ({ not }) => {
    const word = new RegExp(String.raw`\b(?:${not.join('|')})\b`, 'i');
    expect(
      texts.filter(({ text }) => word.test(text)).map(({ name, text }) => `${name}: ${word.exec(text)![0]}`),
    ).toEqual([]);
  });
});
