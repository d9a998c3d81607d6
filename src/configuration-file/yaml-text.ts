import {
  Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  Scalar,
  visit,
  type Alias,
  type ErrorCode,
  type Node,
  type Pair,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { LongWork } from '../infra/long-work.js';
import { escapeUnprintable, unprintable } from '../infra/unprintable.js';

/** Counts from 1. */
export interface Place {
  line: number;
  column: number;
}

type Trouble = Place & { reason: string };

// Texts beyond these are no configuration.

/** Times that one anchor may be used, multiplied with those of the anchors inside of it. */
const mostAliases = 100;
/** Anchors and aliases. For each alias the parser looks through all of them. */
const mostNamed = 10_000;

/** A configuration has no more than eight levels; what reads it calls itself for each. */
const deepest = 50;
/**
 * With what aliases stand for. Without them a text has fewer values than characters, so that no text is too long by
 * itself.
 */
const mostValues = (text: string): number => Math.max(500_000, text.length);
/** Each bracket that is not closed is one; what comes after the first ones says nothing new. */
const mostTroubles = 50;

/** Has escapes in the place of what a terminal would obey, or not show: the text says the same after it was printed. */
export function toYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_key, scalar) => {
      // Only in double quotes there are escapes. Some of these characters are left as they are there.
      if (String(scalar.value).search(unprintable) >= 0) scalar.type = Scalar.QUOTE_DOUBLE;
    },
  });
  // Ends of lines as escapes: spread over lines, some texts with spaces at them are read as others than were written.
  return escapeUnprintable(document.toString({ lineWidth: 120, doubleQuotedMinMultiLineLength: Infinity }));
}

/** Entries of a list that are written at once: some 2 ms, where they are subscriptions. */
const atOnce = 10;

/** As `toYaml`, of a map with long lists, and lets others have their time. */
export async function toYamlInParts(whole: object): Promise<string> {
  const parts: string[] = [];
  const work = new LongWork();
  for (const [name, value] of Object.entries(whole)) {
    const list = Array.isArray(value) ? (value as unknown[]) : [];
    parts.push(toYaml({ [name]: list.length > 0 ? list.slice(0, atOnce) : (value as unknown) }));
    for (let from = atOnce; from < list.length; from += atOnce) {
      await work.yieldIfDue();
      const part = toYaml({ [name]: list.slice(from, from + atOnce) });
      parts.push(part.slice(part.indexOf('\n') + 1)); // without its name
    }
  }
  return parts.length > 0 ? parts.join('') : toYaml(whole);
}

/** A text in YAML, and where in it each value stands. */
export class YamlText {
  /** As JSON would have it; undefined where the text cannot be read. */
  readonly value: unknown;
  readonly troubles: readonly Trouble[];
  private readonly document: Document;
  private readonly lines = new LineCounter();
  /** Of each map that was looked into, by the texts of its keys. */
  private readonly pairs = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();
  private anchored: ReadonlyMap<Alias, Node | undefined> | undefined;

  constructor(text: string) {
    let repeated: Trouble[];
    try {
      // Unique keys it would compare each with each: minutes for a megabyte of them, in which this process does nothing
      // else.
      const options = { lineCounter: this.lines, prettyErrors: false, merge: true, uniqueKeys: false };
      // Its warnings quote the text, on stderr.
      this.document = parseDocument(text, { ...options, logLevel: 'error' });
      repeated = this.repeatedKeys();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // the stack of the parser
      this.document = new Document();
      this.troubles = [ofWhole(tooDeep)];
      return;
    }
    const { errors, warnings } = this.document;
    const told = [...errors, ...warnings].map((error) => ({ ...this.at(error.pos[0]), reason: reasonOf(error) }));
    const troubles = [...told, ...repeated];
    if (troubles.length === 0 && this.hasTooManyNames()) troubles.push(ofWhole(tooManyNames));
    if (troubles.length === 0) {
      try {
        this.value = this.document.toJS({ maxAliasCount: mostAliases });
        const excess = excessOf(this.value, mostValues(text));
        if (excess !== undefined) troubles.push(ofWhole(excess));
      } catch (error) {
        const unresolved = this.unresolvedAliases();
        troubles.push(...(unresolved.length > 0 ? unresolved : [ofWhole((error as Error).message)]));
      }
    }
    this.troubles = troubles.slice(0, mostTroubles);
  }

  /**
   * Where a value stands, or else the nearest one around it.
   * @param name its path, with dots and indices counted from 0; keys may have dots of their own
   * @param isOfKey the place of its key, where it has one
   */
  placeOf(name: string, { isOfKey = false } = {}): Place {
    const { key, value } = this.find(name);
    const node = (isOfKey ? (key ?? value) : (value ?? key)) as Node | null;
    return this.at(node?.range?.[0] ?? 0);
  }

  /**
   * A value that is no text, as it is written: `007` is the number 7, and `1.10` is 1.1. Of a reference it is that of
   * its default, which alone may be no text.
   */
  sourceOf(name: string): string | undefined {
    return this.scalarAt(name)?.source ?? this.scalarAt(`${name}.value_from.default`)?.source;
  }

  private scalarAt(name: string): Scalar | undefined {
    const { value, isExact } = this.find(name);
    const written = this.resolved(value);
    return isExact && isScalar(written) ? written : undefined;
  }

  private repeatedKeys(): Trouble[] {
    const found: Trouble[] = [];
    visit(this.document, {
      Map: (_key, { items }) => {
        const known = new Set<unknown>();
        for (const { key } of items) {
          if (!isScalar(key)) continue;
          if (known.has(key.value)) found.push({ ...this.at(key.range?.[0] ?? 0), reason: 'Map keys must be unique' });
          known.add(key.value);
        }
      },
    });
    return found;
  }

  private hasTooManyNames(): boolean {
    let left = mostNamed;
    visit(this.document, {
      Node: (_key, node) => {
        if ((isAlias(node) || node.anchor !== undefined) && --left < 0) return visit.BREAK;
        return undefined;
      },
    });
    return left < 0;
  }

  private unresolvedAliases(): Trouble[] {
    const reason = 'There is no anchor before this alias. A text that begins with * needs quotes.';
    return [...this.findAnchored()]
      .filter(([, anchored]) => !anchored)
      .map(([{ range }]) => ({ ...this.at(range?.[0] ?? 0), reason }));
  }

  /** The node that an alias stands for, or else the node itself. */
  private resolved(node: unknown): unknown {
    if (!isAlias(node)) return node;
    // `resolve` of the library goes through the whole document for each alias: minutes for ten thousand of them.
    this.anchored ??= this.findAnchored();
    return this.anchored.get(node);
  }

  /** Of each alias the last node before it that has its anchor. */
  private findAnchored(): ReadonlyMap<Alias, Node | undefined> {
    const found = new Map<Alias, Node | undefined>();
    const last = new Map<string, Node>();
    visit(this.document, {
      Node: (_key, node) => {
        if (isAlias(node)) found.set(node, last.get(node.source));
        else if (node.anchor !== undefined) last.set(node.anchor, node);
      },
    });
    return found;
  }

  private at(offset: number): Place {
    const { line, col } = this.lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  private find(name: string): { key?: unknown; value: unknown; isExact: boolean } {
    let found: { key?: unknown; value: unknown } = { value: this.document.contents };
    let rest = name;
    while (rest !== '') {
      const next = this.stepInto(found.value, rest);
      if (!next) return { ...found, isExact: false };
      found = next;
      rest = rest.slice(next.length + 1);
    }
    return { ...found, isExact: true };
  }

  private stepInto(node: unknown, rest: string): { key?: unknown; value: unknown; length: number } | undefined {
    const inside = this.resolved(node);
    if (isSeq(inside)) {
      const [index = ''] = rest.split('.', 1);
      const value = inside.items[Number(index)];
      return value === undefined ? undefined : { value, length: index.length };
    }
    if (!isMap(inside)) return undefined;
    const pairs = this.pairsOf(inside);
    // Keys may have dots of their own: the longest one that fits.
    for (let { length } = rest; length > 0; length = rest.lastIndexOf('.', length - 1)) {
      const pair = pairs.get(rest.slice(0, length));
      if (pair) return { key: pair.key, value: pair.value, length };
    }
    return this.stepIntoMerged(inside, rest);
  }

  private pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
    let pairs = this.pairs.get(map);
    if (!pairs) {
      pairs = new Map(
        map.items.filter(isPair).map((pair) => [String(isScalar(pair.key) ? pair.key.value : pair.key), pair]),
      );
      this.pairs.set(map, pairs);
    }
    return pairs;
  }

  private stepIntoMerged(map: unknown, rest: string): { key?: unknown; value: unknown; length: number } | undefined {
    if (!isMap(map)) return undefined;
    for (const { key, value } of map.items) {
      if (!isScalar(key) || key.source !== '<<') continue;
      for (const merged of isSeq(value) ? value.items : [value]) {
        const found = this.stepInto(merged, rest);
        if (found) return found;
      }
    }
    return undefined;
  }
}

const tooDeep = 'It is nested too deeply.';
const tooManyNames = `It has more than ${mostNamed} anchors and aliases.`;
const tooManyValues = 'With what its aliases stand for it has more values than a text of its length may have.';

const ofWhole = (reason: string): Trouble => ({ line: 1, column: 1, reason });

/** @returns the reason not to read it. Ends also where something holds itself, by an alias inside its anchor. */
function excessOf(whole: unknown, most: number): string | undefined {
  let left = most;
  const excess = (value: unknown, levels: number): string | undefined => {
    if (--left < 0) return tooManyValues;
    if (typeof value !== 'object' || value === null) return undefined;
    if (levels === 0) return tooDeep;
    for (const inside of Object.values(value)) {
      const found = excess(inside, levels - 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return excess(whole, deepest);
}

const noSuchTag = 'There is no such tag here. A text that begins with ! needs quotes.';
/** In the place of messages that quote the text: it may be a secret, such as one that begins with ! or >. */
const ownReasons: Partial<Record<ErrorCode, string>> = {
  BAD_COLLECTION_TYPE: noSuchTag,
  BAD_DIRECTIVE: 'There is no such directive. A text that begins with % needs quotes.',
  BAD_DQ_ESCAPE: 'There is no such escape: in double quotes, a backslash is written twice.',
  TAG_RESOLVE_FAILED: noSuchTag,
};
/** Of these the message says the same, or the first character, whatever is written there. */
const quotesNothing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ALIAS_PROPS',
  'BAD_ALIAS',
  'BAD_INDENT',
  'BAD_PROP_ORDER',
  'BAD_SCALAR_START',
  'BLOCK_AS_IMPLICIT_KEY',
  'BLOCK_IN_FLOW',
  'KEY_OVER_1024_CHARS',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'MULTIPLE_ANCHORS',
  'MULTIPLE_DOCS',
  'MULTIPLE_TAGS',
  'TAB_AS_INDENT',
]);

function reasonOf({ code, message }: YAMLError): string {
  if (quotesNothing.has(code)) return message.split('\n', 1)[0]!;
  return ownReasons[code] ?? 'Cannot be read as YAML from here. A text that begins with > | } ] or , needs quotes.';
}
