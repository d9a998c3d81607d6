import {
  Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  stringify,
  visit,
  type Node,
  type YAMLError,
} from 'yaml';

/** Counts from 1. */
export interface Place {
  line: number;
  column: number;
}

/** Texts beyond this are no configuration, and an alias may stand for at most as much again. */
const mostAliases = 100;

/** A configuration has no more than eight levels; what reads it calls itself for each. */
const deepest = 50;
/** With what aliases stand for. A megabyte holds some 200,000. */
const mostValues = 500_000;
/** Each bracket that is not closed is one; what comes after the first ones says nothing new. */
const mostTroubles = 50;

/** A value as YAML. */
export const toYaml = (value: unknown): string => stringify(value, { lineWidth: 120, aliasDuplicateObjects: false });

/** A text in YAML, and where in it each value stands. */
export class YamlText {
  /** As JSON would have it; undefined where the text cannot be read. */
  readonly value: unknown;
  readonly troubles: readonly (Place & { reason: string })[];
  private readonly document: Document;
  private readonly lines = new LineCounter();

  constructor(text: string) {
    const tooLarge = {
      line: 1,
      column: 1,
      reason: 'It is nested too deeply, or too large with what its aliases stand for.',
    };
    try {
      this.document = parseDocument(text, { lineCounter: this.lines, prettyErrors: false, merge: true });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // the stack of the parser
      this.document = new Document();
      this.troubles = [tooLarge];
      return;
    }
    const { errors, warnings } = this.document;
    const told = [...errors, ...warnings].slice(0, mostTroubles);
    const troubles = told.map((error) => ({ ...this.at(error.pos[0]), reason: reasonOf(error) }));
    if (troubles.length === 0) {
      try {
        this.value = this.document.toJS({ maxAliasCount: mostAliases });
        if (!isOfSize(this.value)) troubles.push(tooLarge);
      } catch (error) {
        const unresolved = this.unresolvedAliases();
        const first = { line: 1, column: 1, reason: (error as Error).message };
        troubles.push(...(unresolved.length > 0 ? unresolved : [first]));
      }
    }
    this.troubles = troubles;
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

  /** A value that is no text, as it is written: `007` is the number 7, and `1.10` is 1.1. */
  sourceOf(name: string): string | undefined {
    const { value, isExact } = this.find(name);
    return isExact && isScalar(value) ? value.source : undefined;
  }

  private unresolvedAliases(): (Place & { reason: string })[] {
    const found: (Place & { reason: string })[] = [];
    visit(this.document, {
      Alias: (_key, alias) => {
        const reason = 'There is no anchor before this alias. A text that begins with * needs quotes.';
        if (!alias.resolve(this.document)) found.push({ ...this.at(alias.range?.[0] ?? 0), reason });
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
    const inside = isAlias(node) ? node.resolve(this.document) : node;
    if (isSeq(inside)) {
      const [index = ''] = rest.split('.', 1);
      const value = inside.items[Number(index)];
      return value === undefined ? undefined : { value, length: index.length };
    }
    if (!isMap(inside)) return undefined;
    let best: { key: unknown; value: unknown; length: number } | undefined;
    for (const { key, value } of inside.items.filter(isPair)) {
      const text = String(isScalar(key) ? key.value : key);
      const fits = rest === text || rest.startsWith(`${text}.`);
      if (fits && text.length >= (best?.length ?? 0)) best = { key, value, length: text.length };
    }
    return best ?? this.stepIntoMerged(inside, rest);
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

/** Ends also where something holds itself, by an alias inside its anchor. */
function isOfSize(whole: unknown): boolean {
  let left = mostValues;
  const fits = (value: unknown, levels: number): boolean =>
    --left >= 0 &&
    (typeof value !== 'object' ||
      value === null ||
      (levels > 0 && Object.values(value).every((inside) => fits(inside, levels - 1))));
  return fits(whole, deepest);
}

/** Without what is written there: a secret that begins with ! is read as a tag. */
const reasonOf = ({ code, message }: YAMLError): string =>
  code === 'TAG_RESOLVE_FAILED'
    ? 'There is no such tag here. A text that begins with ! needs quotes.'
    : message.split('\n', 1)[0]!;
