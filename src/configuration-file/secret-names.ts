/** A field of a file that says where its value is. */
export interface SecretReference {
  value_from: { env: string; required: false };
}

/** Names for the variables that the secrets of an exported configuration may come from; no two are the same. */
export class SecretNames {
  private readonly taken = new Set<string>();

  /** @param key of the thing it belongs to; `what` it is there */
  of(kind: string, key: string, what: string): SecretReference {
    const name = ['heraut', kind, key, what]
      .map((part) => part.replaceAll(/[^A-Za-z0-9]+/g, '_'))
      .join('_')
      .toUpperCase();
    let free = name;
    for (let nr = 2; this.taken.has(free); nr++) free = `${name}_${nr}`;
    this.taken.add(free);
    return { value_from: { env: free, required: false } };
  }
}
