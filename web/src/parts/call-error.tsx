import { englishPart } from './in-english.tsx';
import { useErrorMeaning } from './plain-error.ts';

/** The language of an error of a call, as it is. An answer may be in any: it is what the receiver says. */
export const languageOf = (error: string): 'en' | undefined => (/(^|: )HTTP \d/.test(error) ? undefined : 'en');

/** The error of a call, as it is, in a sentence that `PartlyEnglish` shows. */
export const errorPart = (error: string): string => (languageOf(error) === 'en' ? englishPart(error) : error);

/** The error of a call in words, or as it is. */
export function CallError({ error }: { error: string }) {
  const meaning = useErrorMeaning()(error);
  return meaning ?? <span lang={languageOf(error)}>{error}</span>;
}
