import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { isChangedMeanwhile } from './data.ts';

export interface Read<T> {
  value: T;
  /** Of the state in which it was read. */
  tag: string | undefined;
}

interface Options<T> {
  /** As it is now, as far as the page knows. */
  current: Read<T>;
  /** Reads it again. */
  readAgain: () => Promise<Read<T>>;
  /** @throws {ApiProblem} `changed-meanwhile` where it is in another state than that of the tag */
  save: (value: T, tag: string | undefined) => Promise<unknown>;
}

export interface Draft<T> {
  value: T;
  change: (value: T) => void;
  isDirty: boolean;
  isSaving: boolean;
  /** Of the last try to save; what was typed is still there. */
  error: unknown;
  /** What somebody else has made of it meanwhile. */
  theirs: T | undefined;
  save: () => Promise<boolean>;
  /** Gives up what was typed: shows what there is now. */
  reset: () => void;
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/**
 * What is typed into a form, over something that others may change at the same time. It follows what there is until something
 * is typed, and is kept until it is saved or given up: through errors, and where somebody else was quicker. Where the other change was
 * about something that this form does not show, it is saved over that. To leave the page asks first (`LeaveGuard`).
 */
export function useDraft<T>({ current, readAgain, save }: Options<T>): Draft<T> {
  const [typed, setTyped] = useState<{ value: T; from: Read<T> }>();
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>();
  const [theirs, setTheirs] = useState<Read<T>>();
  const isDirty = typed !== undefined && !isSame(typed.value, typed.from.value);

  const tryToSave = async (value: T, from: Read<T>): Promise<void> => {
    try {
      await save(value, from.tag);
    } catch (failure) {
      if (!isChangedMeanwhile(failure)) throw failure;
      const now = await readAgain();
      if (!isSame(now.value, from.value)) {
        setTheirs(now);
        throw failure;
      }
      await save(value, now.tag);
    }
  };

  return {
    value: typed?.value ?? current.value,
    change: (value) => setTyped((before) => ({ value, from: before?.from ?? current })),
    isDirty,
    isSaving,
    error,
    theirs: theirs?.value,
    save: async () => {
      if (!typed) return true;
      setSaving(true);
      setError(undefined);
      try {
        await tryToSave(typed.value, theirs ?? typed.from);
        setTyped(undefined);
        setTheirs(undefined);
        return true;
      } catch (failure) {
        setError(failure);
        return false;
      } finally {
        setSaving(false);
      }
    },
    reset: () => {
      setTyped(undefined);
      setTheirs(undefined);
      setError(undefined);
    },
  };
}

/** Asks before the page is left with something typed that is not saved. */
export function useLeaveGuard(isDirty: boolean) {
  return useBlocker({ shouldBlockFn: () => isDirty, enableBeforeUnload: () => isDirty, withResolver: true });
}
