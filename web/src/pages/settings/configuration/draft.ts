import { useSyncExternalStore } from 'react';
import { isSame } from '../../../drafts/draft.ts';

/**
 * The input of this page, kept while other pages are looked at. It may hold secrets, so it stays in the memory of the
 * page.
 */
export interface ConfigurationDraft {
  text: string;
  isPruning: boolean;
  /** By the name of the variable, or the path of the file. */
  env: Readonly<Record<string, string>>;
  file: Readonly<Record<string, string>>;
}

const empty: ConfigurationDraft = { text: '', isPruning: false, env: {}, file: {} };
let draft = empty;
/** As it was loaded or applied: with the page, nothing of that is lost. */
let stored = empty;
const listeners = new Set<() => void>();

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

const valuesOf = ({ env, file }: ConfigurationDraft) =>
  [env, file].map((values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')));

const isTyped = () =>
  (draft.text.trim() !== '' && draft.text !== stored.text) || !isSame(valuesOf(draft), valuesOf(stored));

const ask = (event: BeforeUnloadEvent) => event.preventDefault();

/** Other pages leave it as it is. A reload, the end of the window, and signing out, which loads a page, do not. */
const askWhereTyped = () => {
  if (isTyped()) window.addEventListener('beforeunload', ask);
  else window.removeEventListener('beforeunload', ask);
};

/** That much was loaded or applied. */
export function keepAsStored(changes: Partial<ConfigurationDraft>): void {
  stored = { ...stored, ...changes };
  askWhereTyped();
}

export function useConfigurationDraft(): [ConfigurationDraft, (changes: Partial<ConfigurationDraft>) => void] {
  const current = useSyncExternalStore(subscribe, () => draft);
  const change = (changes: Partial<ConfigurationDraft>) => {
    draft = { ...draft, ...changes };
    askWhereTyped();
    for (const listener of listeners) listener();
  };
  return [current, change];
}
