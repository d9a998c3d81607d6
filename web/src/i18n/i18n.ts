import i18next from 'i18next';
import { useMemo } from 'react';
import { initReactI18next, useTranslation } from 'react-i18next';
import { formatFor } from './format.ts';

const languages = ['en', 'nl'] as const;
export type Language = (typeof languages)[number];

const storageKey = 'heraut-language';

function firstLanguage(): Language {
  const stored = readStored();
  if (stored) return stored;
  return navigator.language.toLowerCase().startsWith('nl') ? 'nl' : 'en';
}

function readStored(): Language | undefined {
  try {
    return languages.find((language) => language === localStorage.getItem(storageKey));
  } catch {
    return undefined; // storage is switched off
  }
}

void i18next.use(initReactI18next).init({
  lng: firstLanguage(),
  fallbackLng: 'en',
  resources: {},
  initAsync: false,
  // React escapes what it shows.
  interpolation: { escapeValue: false },
  react: { useSuspense: false },
});
document.documentElement.lang = i18next.language;

export const currentLanguage = (): Language => i18next.language as Language;

export async function changeLanguage(language: Language): Promise<void> {
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // storage is switched off: it counts for this page
  }
}

type PluralOf<K> = K extends `${infer Base}_${'zero' | 'one' | 'other'}` ? Base : K;
export type Translate<K extends string> = (key: PluralOf<K>, values?: Record<string, unknown>) => string;

const asWritten = (values: Record<string, unknown>, language: string): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'number' ? formatFor(language).number(value) : value,
    ]),
  );

/**
 * The texts of one page or part, in both languages: the compiler insists that both have the same keys. They come with
 * the code that shows them, so that the first load has no others. A key with `_one` and `_other` is asked for without,
 * with `{ count }`.
 * @returns a hook that gives the function which translates
 */
export function defineTexts<K extends string>(
  namespace: string,
  en: Record<K, string>,
  nl: Record<NoInfer<K>, string>,
): () => Translate<K> {
  i18next.addResourceBundle('en', namespace, en);
  i18next.addResourceBundle('nl', namespace, nl);
  return function useTexts() {
    const {
      t,
      i18n: { language },
    } = useTranslation(namespace);
    return useMemo((): Translate<K> => {
      const translate = t as unknown as (key: string, values?: Record<string, unknown>) => string;
      // A number chooses the plural as it is, and is shown as the language writes it.
      return (key, values) => translate(key, values && { ...values, replace: asWritten(values, language) });
    }, [t, language]);
  };
}
