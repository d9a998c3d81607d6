import { LRUCache } from 'lru-cache';
import { unescaped, withoutBegun } from './unescaped.js';

/** Shorter ones are ordinary words, and their absence would tell more than they do. */
const shortestSecret = 8;
const censored = '[secret]';
/** The layers that a secret is wrapped in: JSON in JSON in a page, say. */
const mostLayers = 3;
/**
 * The subscriber chooses the secrets, and the answering server the text: to bring this much into its forms takes 5 ms
 * at worst, and so many steps, each a character that is looked at for one of the forms, 14 (docs/decisions/0091).
 */
const [mostSecretCharacters, mostSteps] = [32_768, 2_000_000];
/** In place of a text in which there is too much to look for. */
const leftOut = '[left out: too many or too long secrets to look for]';

type Range = readonly [from: number, to: number];

/**
 * The text without these secrets, also where one was cut off at the end of the text: as they are, in capitals or not,
 * escaped as JSON, JavaScript, URLs, forms or HTML do it, in three layers at most, and in Base64, by itself or as a
 * part of something (docs/decisions/0033). The time it takes is that of the lengths: whoever answers chooses the text.
 */
export const withoutSecret = (text: string, secrets: readonly string[]): string => cleanerOf(secrets)(text);

/** As `withoutSecret`, for several texts, which together may take so many steps. */
export function cleanerOf(secrets: readonly string[]): (text: string) => string {
  const long = secrets.filter(({ length }) => length >= shortestSecret);
  const isTooMuch = long.reduce((sum, { length }) => sum + length, 0) > mostSecretCharacters;
  const needles = isTooMuch ? [] : [...new Set(long.flatMap(needlesOf))];
  let stepsLeft = mostSteps;
  return (text) => {
    if (long.length === 0 || text.length < shortestSecret) return text;
    if (isTooMuch) return leftOut;
    const ranges: Range[] = [];
    for (const layer of layersOf(text)) {
      for (const needle of needles) {
        stepsLeft -= layer.text.length + Math.min(needle.length, layer.text.length);
        if (stepsLeft < 0) return leftOut;
        ranges.push(...rangesOf(layer, needle));
      }
    }
    return ranges.length === 0 ? text : without(text, ranges);
  };
}

/** Of the same credentials at every call that fails: to bring them into their forms is most of what that costs. */
const known = new LRUCache<string, string[]>({
  maxSize: 8_000_000,
  sizeCalculation: (needles) => needles.reduce((sum, { length }) => sum + length, 1),
});

/** The forms of a secret to look for, in lower case. */
function needlesOf(secret: string): string[] {
  let needles = known.get(secret);
  if (!needles) {
    needles = [...new Set(formsOf(secret).map(lower))].filter(({ length }) => length >= shortestSecret);
    known.set(secret, needles);
  }
  return needles;
}

interface Layer {
  text: string;
  /** Of a text that was cut off within an escape, that much is the text without it. */
  whole: number;
  at: (position: number) => number;
  /** Of the text that was given. */
  end: number;
}

function layersOf(text: string): Layer[] {
  const layers: Layer[] = [];
  let at = (position: number): number => position;
  for (let inner = text; layers.length <= mostLayers;) {
    layers.push({ text: lower(inner), whole: withoutBegun(inner).length, at, end: text.length });
    const undone = unescaped(inner);
    if (undone.text === inner) break;
    const before = at;
    at = (position) => before(undone.at(position));
    inner = undone.text;
  }
  return layers;
}

/** In what forms it may be in a layer: what looks like an escape in the secret itself is undone with the others. */
function formsOf(secret: string): string[] {
  const plain = [secret];
  for (
    let next = unescaped(secret).text;
    next !== plain.at(-1) && plain.length <= mostLayers;
    next = unescaped(next).text
  )
    plain.push(next);
  return [...plain, ...plain.map((each) => each.replaceAll(' ', '+')), ...inBase64(secret)];
}

/** In three ways, by what may be in front of it in what was encoded: whole triples, or one byte or two beside. */
function inBase64(secret: string): string[] {
  const bytes = Buffer.from(secret, 'latin1');
  const alone = bytes.toString('base64').replace(/=+$/, '');
  const within = [0, 1, 2].map((before) => {
    // Without the characters that have bits of a neighbour.
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)];
    return Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .slice(from, to);
  });
  const all = [alone, ...within];
  return [...all, ...all.map((each) => each.replaceAll('+', '-').replaceAll('/', '_'))];
}

function rangesOf({ text, whole, at, end }: Layer, needle: string): Range[] {
  // Nearly always there is nothing, and this says so; what begins like that is also all that could be cut off.
  const first = text.indexOf(needle.slice(0, shortestSecret));
  if (first < 0) return [];
  const { ends, atEnd } = occurrences(text, first, needle);
  const ranges = ends.map((to): Range => [at(to - needle.length), at(to)]);
  if (atEnd >= shortestSecret) ranges.push([at(text.length - atEnd), end]);
  else if (whole < text.length) {
    const cut = occurrences(text.slice(0, whole), first, needle).atEnd;
    if (cut >= shortestSecret) ranges.push([at(whole - cut), end]);
  }
  return ranges;
}

/**
 * By Knuth, Morris and Pratt: in one pass, whatever the two are.
 * @param from nothing is to be found before
 * @returns where it ends each time, and how much of its beginning the text ends with
 */
function occurrences(text: string, from: number, needle: string): { ends: number[]; atEnd: number } {
  const longest = Math.min(needle.length, text.length + 1);
  const borders = new Int32Array(longest + 1);
  for (let [length, border] = [1, 0]; length < longest; length++) {
    while (border > 0 && needle[length] !== needle[border]) border = borders[border]!;
    if (needle[length] === needle[border]) border++;
    borders[length + 1] = border;
  }
  const ends: number[] = [];
  let matched = 0;
  for (let position = from; position < text.length; position++) {
    while (matched > 0 && text[position] !== needle[matched]) matched = borders[matched]!;
    if (text[position] === needle[matched]) matched++;
    if (matched < needle.length) continue;
    ends.push(position + 1);
    matched = borders[matched]!;
  }
  return { ends, atEnd: matched };
}

function without(text: string, ranges: Range[]): string {
  let [clean, done] = ['', 0];
  let isOpen = false;
  for (const [from, to] of ranges.toSorted(([one], [other]) => one - other)) {
    if (from > done || !isOpen) clean += text.slice(done, from) + censored;
    isOpen = true;
    done = Math.max(done, to);
  }
  return clean + text.slice(done);
}

/** Only the letters that a header may have: some of the others become two. */
function lower(text: string): string {
  if (!/[^\0-\xff]/.test(text)) return text.toLowerCase(); // a hundred times as fast
  return text.replaceAll(/[A-ZÀ-ÖØ-Þ]+/g, (letters) => letters.toLowerCase());
}
