const known = new Map<string, string>();
// Names come from callers, so the memory of them is bounded, in number and in length.
const maxKnown = 10_000;
const maxKnownLength = 100;

/**
 * The form in which the names of filters and characteristics are compared: snake_case in lower case. Publishers
 * register `object_type` and send `objectType`; both, and `ObjectType`, are `object_type` here. An underscore beside a
 * digit does not count, because older clients put it in different places (`a1B2` is their `a_1b_2`).
 */
export function canonicalName(name: string): string {
  let canonical = known.get(name);
  if (canonical !== undefined) return canonical;
  canonical = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/_{2,}/g, '_')
    .replace(/_(?=\d)|(?<=\d)_/g, '');
  if (name.length <= maxKnownLength) {
    if (known.size >= maxKnown) known.clear();
    known.set(name, canonical);
  }
  return canonical;
}

/**
 * Whether the names given are consistent with the names a channel knows: a subset, or a superset, of them. So a channel
 * that knows none accepts any, and an unknown name is accepted only together with all the known ones.
 */
export function areNamesConsistent(names: Names, channelNames: ReadonlySet<string>): boolean {
  return isSubset(names, channelNames) || isSubset(channelNames, names);
}

/** For the reason of a refusal: channels of before there was a limit may have a hundred thousand names. */
export const listedNames = (names: readonly string[]): string =>
  names.length <= mostListed
    ? names.join(', ')
    : `${names.slice(0, mostListed).join(', ')} and ${names.length - mostListed} more`;

const mostListed = 50;

/** A set, or the keys of a map. */
type Names = ReadonlySet<string> | ReadonlyMap<string, unknown>;

function isSubset(names: Names, others: Names): boolean {
  if (names.size > others.size) return false;
  for (const name of names.keys()) if (!others.has(name)) return false;
  return true;
}

/**
 * A characteristic's name as it is sent: a name in snake_case becomes camelCase, which receivers expect; any
 * other keeps the publisher's own spelling.
 */
export function outgoingName(name: string): string {
  if (!name.includes('_') || name !== name.toLowerCase()) return name;
  return name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * The name of a filter as clients are shown it: as it is sent, unless that is another name. `naam_b_v` is sent as
 * `naamBV`, which is `naam_bv`: a client that sends back the filters it was shown would change this one.
 */
export function shownName(name: string): string {
  const outgoing = outgoingName(name);
  return canonicalName(outgoing) === canonicalName(name) ? outgoing : name;
}
