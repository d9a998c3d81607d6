interface Option {
  value: string;
  label: string;
}

/**
 * Those that are chosen are there also where the catalogue has them no more, or the API does not know them: an address
 * may have anything.
 */
export function withChosen(options: readonly Option[], chosen: readonly string[]): Option[] {
  const known = new Set(options.map(({ value }) => value));
  return [...chosen.filter((id) => !known.has(id)).map((id) => ({ value: id, label: id })), ...options];
}

export const namedWithChosen = <T extends string>(
  known: readonly T[],
  nameOf: (one: T) => string,
  chosen: readonly string[],
): Option[] =>
  withChosen(
    known.map((each) => ({ value: each, label: nameOf(each) })),
    chosen,
  );
