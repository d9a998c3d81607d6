import { meets, type Demands } from './match-filters.js';
import { MultiMap } from './multi-map.js';

type Values = ReadonlyMap<string, string>;

/** To compare so many is faster than to make one text of several values. */
const few = 8;

/**
 * Entries of subscriptions that demand values of the same names, found by those values.
 *
 * - A notification that has all of the names: by all values together, so that only what is met is visited, also where
 *   thousands of entries share one value and differ in another.
 * - One that has some of them: by the value that the fewest entries demand. Where it has one name, those are met; where
 *   it has more, they are compared. Most publishers send every name, so these maps are made when a notification lacks
 *   one.
 * - One that has none of them: every entry is met.
 */
export class EntriesByValue<Entry extends { readonly demands: Demands }> {
  private readonly byValues = new MultiMap<string, Entry>();
  /** For each of the names, in their order. */
  private byValueOf: MultiMap<string, Entry>[] | undefined;

  /** @param names at least one, in the order of the demands */
  constructor(private readonly names: readonly string[]) {}

  get isEmpty(): boolean {
    return this.byValues.size === 0;
  }

  add(entry: Entry): void {
    this.byValues.add(keyOfValues(entry.demands.map(([, value]) => value)), entry);
    if (this.byValueOf) addByValue(this.byValueOf, entry);
  }

  remove(entry: Entry): void {
    this.byValues.remove(keyOfValues(entry.demands.map(([, value]) => value)), entry);
    this.byValueOf?.forEach((entries, nr) => entries.remove(entry.demands[nr]![1], entry));
  }

  visitMet(characteristics: Values, visitor: (entry: Entry) => void): void {
    let present = 0;
    for (const name of this.names) if (characteristics.has(name)) present++;
    if (present === 0) this.byValues.visitAll(visitor);
    else if (this.names.length > 1 && this.byValues.size <= few) this.visitMetOfFew(characteristics, visitor);
    else if (present < this.names.length) this.visitMetBySome(characteristics, visitor);
    else this.byValues.visit(keyOfValues(this.names.map((name) => characteristics.get(name)!)), visitor);
  }

  private visitMetOfFew(characteristics: Values, visitor: (entry: Entry) => void): void {
    this.byValues.visitAll((entry) => {
      if (meets(entry.demands, characteristics)) visitor(entry);
    });
  }

  private visitMetBySome(characteristics: Values, visitor: (entry: Entry) => void): void {
    const byValueOf = (this.byValueOf ??= this.separate());
    let [fewest, rarest, rarestValue] = [Infinity, this.byValues, ''];
    for (const [nr, name] of this.names.entries()) {
      const value = characteristics.get(name);
      const count = value === undefined ? Infinity : byValueOf[nr]!.countOf(value);
      if (value !== undefined && count < fewest) [fewest, rarest, rarestValue] = [count, byValueOf[nr]!, value];
    }
    rarest.visit(rarestValue, (entry) => {
      if (meets(entry.demands, characteristics)) visitor(entry);
    });
  }

  private separate(): MultiMap<string, Entry>[] {
    const byValueOf = this.names.map(() => new MultiMap<string, Entry>());
    this.byValues.visitAll((entry) => addByValue(byValueOf, entry));
    return byValueOf;
  }
}

/** One text for a value of each name: with their lengths, or two lists of values could have the same. */
function keyOfValues(values: readonly string[]): string {
  if (values.length === 1) return values[0]!;
  let key = '';
  for (const value of values) key += `${value.length}:${value}`;
  return key;
}

function addByValue<Entry extends { readonly demands: Demands }>(
  byValueOf: MultiMap<string, Entry>[],
  entry: Entry,
): void {
  for (const [nr, [, value]] of entry.demands.entries()) byValueOf[nr]!.add(value, entry);
}
