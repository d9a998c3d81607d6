/** So many are named; all others are in the file, without `authorization`. */
const mostNamed = 20;

/**
 * A sentence that names the subscriptions whose secrets an exported configuration does not have, since the process that
 * answered cannot decrypt them; undefined: there are none. All others have an `authorization`.
 */
export function sayLeftOut({ subscriptions }: { subscriptions: readonly object[] }): string | undefined {
  const without = subscriptions.filter((each) => !('authorization' in each)) as { id: string }[];
  if (without.length === 0) return undefined;
  const named = without.slice(0, mostNamed).map(({ id }) => id);
  const more = without.length > mostNamed ? ` and ${without.length - mostNamed} more` : '';
  return `Left out are credentials and signing keys that the process that answered cannot decrypt, of the subscriptions ${named.join(', ')}${more}.`;
}

/** The same as a comment in YAML, before all else; empty where nothing is left out. */
export function commentOnLeftOut(exported: { subscriptions: readonly object[] }): string {
  const said = sayLeftOut(exported);
  return said === undefined ? '' : `# ${said}\n`;
}
