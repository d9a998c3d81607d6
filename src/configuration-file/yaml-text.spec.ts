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
