import { useState } from 'react';

/** What the API shows of a resource, with the `ETag` that it had. */
export interface Tagged<T> {
  data: T;
  tag: string | undefined;
}

export interface Draft<T> {
  values: T;
  /** Of the state that the values were made from. */
  tag: string | undefined;
  isDirty: boolean;
  /** Somebody else has changed it since the first of these changes. */
  isOutdated: boolean;
  change: (changes: Partial<T>) => void;
  discard: () => void;
}

/**
 * What somebody types over what is stored: as long as nothing is typed it follows what is stored, then it stays whatever others do.
 * @param stored undefined: it is loading
 */
export function useDraft<T extends object>(stored: Tagged<T> | undefined): Draft<T> | undefined {
  const [typed, setTyped] = useState<{ base: Tagged<T>; values: T }>();
  if (!stored) return undefined;
  const { base, values } = typed ?? { base: stored, values: stored.data };
  return {
    values,
    tag: base.tag,
    isDirty: typed !== undefined,
    isOutdated: typed !== undefined && base.tag !== stored.tag,
    change: (changes) =>
      setTyped((before) => ({
        base: before?.base ?? stored,
        values: { ...(before?.values ?? stored.data), ...changes },
      })),
    discard: () => setTyped(undefined),
  };
}
