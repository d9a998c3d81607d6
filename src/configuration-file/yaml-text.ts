import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from 'yaml';

/** Counts from 1. */
export interface Place {
  line: number;
  column: number;
}

/** Texts beyond this are no configuration, and an alias may stand for at most as much again. */
const mostAliases = 100;

/** A text in YAML, and where in it each value stands. */
export class YamlText {
  /** As JSON would have it; undefined where the text cannot be read. */
  readonly value: unknown;
  readonly troubles: readonly (Place & { reason: string })[];
  private readonly document: Document;
  private readonly lines = new LineCounter();

  constructor(text: string) {
    this.document = parseDocument(text, { lineCounter: this.lines, prettyErrors: false, merge: true });
    const { errors, warnings } = this.document;
    const troubles = [...errors, ...warnings].map(({ pos, message }) => ({
      ...this.at(pos[0]),
      reason: message.split('\n', 1)[0]!,
    }));
    if (troubles.length === 0) {
      try {
        this.value = this.document.toJS({ maxAliasCount: mostAliases });
      } catch (error) {
        troubles.push({ line: 1, column: 1, reason: (error as Error).message });
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
