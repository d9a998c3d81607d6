import type { HistoryLocation } from '@tanstack/react-router';
import { createContext, useState } from 'react';
import type { Step } from '../parts/leaving.tsx';
import { oneOf, parseSearch } from '../parts/url-state.ts';
import { saveOver, theirsIn, typedAfter, typedSince, type Read, type Saving, type Typed } from './draft.ts';

interface Options<T> extends Saving<T> {
  /** As it is now, as far as the page knows. */
  current: Read<T>;
}

export interface Draft<T> {
  value: T;
  change: (value: T) => void;
  isDirty: boolean;
  isSaving: boolean;
  /** Of the last try to save; what was typed is still there. */
  error: unknown;
  /** The version that somebody else saved meanwhile. */
  theirs: T | undefined;
  /** @returns whether it is saved */
  save: () => Promise<boolean>;
  /** Over their version, which has been shown. */
  saveOverTheirs: () => Promise<boolean>;
  /** Gives up what was typed: shows what there is now. */
  reset: () => void;
}

/**
 * Input of a form over a value that others may change at the same time. It follows that value until something
 * is typed, and is kept until it is saved or given up: through errors, and where somebody else was quicker.
 */
export function useDraft<T>({ current, readAgain, save, asStored }: Options<T>): Draft<T> {
  const [typed, setTyped] = useState<Typed<T>>();
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>();
  // Until the answer is there it may be one's own.
  const theirs = isSaving ? undefined : theirsIn(typed, current, asStored);

  const saveTypedOver = async (over: Read<T> | undefined): Promise<boolean> => {
    if (!typed || !over) return true;
    setSaving(true);
    setError(undefined);
    try {
      const saved = await saveOver(typed.value, over, { readAgain, save, asStored });
      setTyped((now) => typedSince(now, typed.value, saved));
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setSaving(false);
    }
  };

  return {
    value: typed?.value ?? current.value,
    change: (value) => setTyped((before) => typedAfter(before, value, current)),
    isDirty: typed !== undefined,
    isSaving,
    error,
    theirs: theirs?.value,
    save: () => saveTypedOver(typed?.over),
    saveOverTheirs: () => saveTypedOver(theirs),
    reset: () => {
      setTyped(undefined);
      setError(undefined);
    },
  };
}

/**
 * Whether the forms below are about something that is not there any more: they keep what was typed, and cannot be
 * saved.
 */
export const IsGone = createContext(false);

/** Those names in an address that say which form is shown; others may change under it. */
const namesOfForms = ['tab', 'application'] as const;

const placeOf = ({ pathname, search }: HistoryLocation): string => {
  const state = parseSearch(search);
  return JSON.stringify([pathname, ...namesOfForms.map((name) => oneOf(state[name]))]);
};

/** Whether a form is left with what was typed. */
export const isElsewhere = ({ currentLocation, nextLocation }: Step): boolean =>
  placeOf(currentLocation) !== placeOf(nextLocation);
