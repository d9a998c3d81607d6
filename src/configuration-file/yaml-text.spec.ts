import { describe, expect, it } from 'vitest';
import { unprintable } from '../infra/unprintable.js';
import { toYaml, toYamlInParts, YamlText } from './yaml-text.js';

const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, nr) => String.fromCharCode(from + nr));
const characters = [...range(0, 0x100), ...range(0x2000, 0x2070), '\ud800', '\ufeff'];

describe('a configuration that is written as YAML', () => {
  it('shows what a terminal would obey as escapes, wherever it stands, and is the same when it is read', async () => {
    const texts = characters.flatMap((character) => [
      `a${character}b`,
      character,
      `one\n${character}two ${character}\n\n ${character} three\n`,
      `  ${character} \n \n  one\n\n two`,
      `${`word${character} `.repeat(40)}"\\'`,
    ]);
    const whole = {
      channels: texts.map((text) => ({ [text]: text, in: [text] })),
      retryPolicy: { [texts.join('')]: texts.join(' ') },
    };
    const text = await toYamlInParts(whole);
    expect(text.search(unprintable)).toBe(-1);
    expect(new YamlText(text)).toMatchObject({ troubles: [], value: whole });
    expect(toYaml(whole)).toBe(text);
  });

  it('quotes no other text', () => {
    expect(toYaml({ label: 'Zaken 通知 👩‍💻', text: 'one\ntwo\n' })).toBe(
      'label: Zaken 通知 👩‍💻\ntext: |\n  one\n  two\n',
    );
    expect(toYaml({ label: 'a\u200eb\u0085', '\t': 'c\td' })).toBe('label: "a\\u200eb\\u0085"\n"\\t": "c\\td"\n');
  });
});

describe('a text with aliases', () => {
  it('is gone through once for all that is asked of them', () => {
    const count = 50;
    const aliases = Array.from({ length: count }, () => '{ number: *number, <<: *map }').join(', ');
    const text = new YamlText(`anchors: [&number 1.10, &map { inside: { digits: 007 } }]\nlist: [${aliases}]`);
    expect(text.troubles).toEqual([]);
    // Read whenever somebody looks for the anchor of an alias.
    let looks = 0;
    Object.defineProperty(text['document'].getIn(['anchors', 0], true), 'anchor', { get: () => (looks++, 'number') });
    const looksAt = (nr: number) => {
      expect(text.sourceOf(`list.${nr}.number`)).toBe('1.10');
      expect(text.sourceOf(`list.${nr}.inside.digits`)).toBe('007');
      expect(text.placeOf(`list.${nr}.inside.digits`)).toEqual({ line: 1, column: 50 });
      return looks;
    };
    const first = looksAt(0);
    expect(first).toBeGreaterThan(0);
    for (let nr = 1; nr < count; nr++) expect(looksAt(nr)).toBe(first);
  });

  it('has the last anchor before each of them', () => {
    const text = new YamlText('a: [&one 01, *one, &one 02, *one, &self [*self, 03]]');
    expect([1, 3].map((nr) => text.sourceOf(`a.${nr}`))).toEqual(['01', '02']);
    expect(text.sourceOf('a.4.0.0.1')).toBe('03');
  });
});
