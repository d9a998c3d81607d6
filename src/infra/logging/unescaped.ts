/**
 * A text, and where each of its characters begins in the text that it was made of; behind the last one, the end of
 * that.
 */
export interface Mapped {
  text: string;
  at: (position: number) => number;
}

const named: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  bsol: '\\',
  colon: ':',
  comma: ',',
  commat: '@',
  dollar: '$',
  equals: '=',
  excl: '!',
  gt: '>',
  hat: '^',
  lbrace: '{',
  lbrack: '[',
  lcub: '{',
  lowbar: '_',
  lpar: '(',
  lsqb: '[',
  lt: '<',
  nbsp: ' ',
  num: '#',
  percnt: '%',
  period: '.',
  plus: '+',
  quest: '?',
  quot: '"',
  rbrace: '}',
  rbrack: ']',
  rcub: '}',
  rpar: ')',
  rsqb: ']',
  semi: ';',
  sol: '/',
  tab: '\t',
  verbar: '|',
};

// Every quantifier is bounded, so the time is that of the length. Of UTF-8, only what a header may have: up to U+00FF.
const escapes =
  /\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(["\\/'t]))|%c([23])%([89ab])([0-9a-f])|%([0-9a-f]{2})|&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]{2,6}));/gi;
/** A possible beginning of one, at the end of a text that was cut off. */
const begun = /(?:\\(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?|%c[23]%[89ab]?|%[0-9a-f]?|&[#0-9a-z]{0,8})$/i;

const highestCode = 0x10_ffff;

/**
 * Undoes the escapes of JSON and of JavaScript, of URLs and forms, and of HTML, each once: what is left may be escaped
 * again.
 */
export function unescaped(text: string): Mapped {
  if (!/[\\%&]/.test(text)) return { text, at: (position) => position };
  const at: number[] = [];
  let [result, done] = ['', 0];
  const keep = (end: number) => {
    for (let position = done; position < end; position++) at.push(position);
    result += text.slice(done, end);
    done = end;
  };
  for (const match of text.matchAll(escapes)) {
    const character = characterOf(match);
    if (character === undefined) continue;
    keep(match.index);
    for (let unit = 0; unit < character.length; unit++) at.push(match.index);
    result += character;
    done = match.index + match[0].length;
  }
  keep(text.length);
  at.push(text.length);
  return { text: result, at: (position) => at[position]! };
}

function characterOf(match: RegExpExecArray): string | undefined {
  const [, unicode, hex, plain, lead, high, low, percent, hexEntity, entity, name] = match;
  if (plain !== undefined) return plain === 't' ? '\t' : plain;
  if (lead !== undefined) return String.fromCodePoint((Number(lead) - 2) * 64 + Number.parseInt(high! + low!, 16));
  if (name !== undefined) return named[name.toLowerCase()];
  const hexadecimal = unicode ?? hex ?? percent ?? hexEntity;
  const code = hexadecimal === undefined ? Number(entity) : Number.parseInt(hexadecimal, 16);
  return code > highestCode ? undefined : String.fromCodePoint(code);
}

/** The text without an escape that was cut off at its end. */
export const withoutBegun = (text: string): string => text.replace(begun, '');
