import { isDeepStrictEqual } from 'node:util';

/** Of a secret neither value is told. */
export type FieldChange =
  | { name: string; before: unknown; after: unknown }
  | { name: string; secret: 'set' | 'changed' | 'removed' };

/** Something as it is, or is to be. */
export interface Shown {
  fields: Readonly<Record<string, unknown>>;
  /** Undefined: it is there, but cannot be decrypted. */
  secrets: Readonly<Record<string, string | undefined>>;
}

/** @param before null: it is not there, and fields that would be null or empty are not told of */
export function fieldsThatDiffer(before: Shown | null, after: Shown): FieldChange[] {
  const fields = namesOf(before?.fields, after.fields).flatMap((name): FieldChange[] => {
    const [old = null, wanted = null] = [before?.fields[name], after.fields[name]];
    if (isDeepStrictEqual(old, wanted) || (!before && isNothing(wanted))) return [];
    return [{ name, before: old, after: wanted }];
  });
  const secrets = namesOf(before?.secrets, after.secrets).flatMap((name): FieldChange[] => {
    if (!before || !(name in before.secrets)) return [{ name, secret: 'set' }];
    if (!(name in after.secrets)) return [{ name, secret: 'removed' }];
    return before.secrets[name] === after.secrets[name] ? [] : [{ name, secret: 'changed' }];
  });
  return [...fields, ...secrets];
}

const namesOf = (one: object = {}, other: object = {}): string[] => [
  ...new Set([...Object.keys(one), ...Object.keys(other)]),
];

const isNothing = (value: unknown): boolean =>
  value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0);
