import { isProblem } from '../api/problem.ts';
import type { ComparedField } from '../parts/field-diff.tsx';

/** A value as it was read, with the `ETag` that it had. */
export interface Read<T> {
  value: T;
  tag: string | undefined;
}

/** A value that somebody typed, and the one that it was typed over. */
export interface Typed<T> {
  value: T;
  over: Read<T>;
}

/** Whether both are the same as JSON, whatever the order of their fields. */
export const isSame = (one: unknown, other: unknown): boolean => inOrder(one) === inOrder(other);

const inOrder = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );

/** The fields in which two states of the same differ. */
export function changesBetween(before: object, now: object): ComparedField[] {
  const [old, present] = [new Map(Object.entries(before)), new Map(Object.entries(now))];
  return [...new Set([...old.keys(), ...present.keys()])]
    .map((name): ComparedField => ({ name, before: old.get(name), after: present.get(name) }))
    .filter((field) => !isSame(field.before, field.after));
}

/**
 * The draft after an input; undefined where it equals the current value: then it follows the changes of others again.
 */
export const typedAfter = <T>(typed: Typed<T> | undefined, value: T, current: Read<T>): Typed<T> | undefined => {
  const over = typed?.over ?? current;
  return isSame(value, over.value) ? undefined : { value, over };
};

/**
 * The rest of a draft when a value has been saved: the input since.
 * @param saved as it is stored now
 */
export const typedSince = <T>(typed: Typed<T> | undefined, value: T, saved: Read<T>): Typed<T> | undefined =>
  typed === undefined || isSame(typed.value, value) ? undefined : { value: typed.value, over: saved };

/** A value as it is stored, without what belongs to the screen alone; by itself it may be typed in several ways. */
export type AsStored<T> = (value: T) => unknown;

const asItIs = (value: unknown): unknown => value;

/** The version that somebody else saved since the first letter was typed, where that is not the same. */
export const theirsIn = <T>(
  typed: Typed<T> | undefined,
  current: Read<T>,
  asStored: AsStored<T> = asItIs,
): Read<T> | undefined =>
  typed === undefined ||
  isSame(current.value, typed.over.value) ||
  isSame(asStored(current.value), asStored(typed.value))
    ? undefined
    : current;

export interface Saving<T> {
  asStored?: AsStored<T> | undefined;
  /** Reads it again. */
  readAgain: () => Promise<Read<T>>;
  /**
   * @returns as it is stored
   * @throws {ApiProblem} `changed-meanwhile` where it is in another state than that of the tag
   */
  save: (value: T, tag: string | undefined) => Promise<Read<T>>;
}

/**
 * Saves a value over what it was typed over. Where another change was made meanwhile about something that the value
 * does not have, it is saved over that.
 * @throws {ApiProblem} `changed-meanwhile` where the other change was about the same
 */
export async function saveOver<T>(
  value: T,
  over: Read<T>,
  { readAgain, save, asStored = asItIs }: Saving<T>,
): Promise<Read<T>> {
  try {
    return await save(value, over.tag);
  } catch (failure) {
    if (!isProblem(failure, 'changed-meanwhile')) throw failure;
    const now = await readAgain();
    // Also where an earlier try was carried out, and its answer lost.
    if (isSame(asStored(now.value), asStored(value))) return now;
    if (!isSame(now.value, over.value)) throw failure;
    return await save(value, now.tag);
  }
}
