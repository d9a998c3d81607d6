import { useSyncExternalStore } from 'react';

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

let draft: ConfigurationDraft = { text: '', isPruning: false, env: {}, file: {} };
const listeners = new Set<() => void>();

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export function useConfigurationDraft(): [ConfigurationDraft, (changes: Partial<ConfigurationDraft>) => void] {
  const current = useSyncExternalStore(subscribe, () => draft);
  const change = (changes: Partial<ConfigurationDraft>) => {
    draft = { ...draft, ...changes };
    for (const listener of listeners) listener();
  };
  return [current, change];
}
