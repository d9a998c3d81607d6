import type { ReactNode } from 'react';

/** A text that the API writes, which knows no other language: a screen reader has to read it as English. */
export function InEnglish({ children }: { children: ReactNode }) {
  return <span lang="en">{children}</span>;
}

/** On either side of what is English in a sentence of the console; no text of the API has it. */
const mark = '\u0000';

/** A text that the API writes, as a part of a sentence that `PartlyEnglish` shows. */
export const englishPart = (text: string): string => `${mark}${text}${mark}`;

/** Such a sentence where no part of it can be marked, as in a title. */
export const withoutMarks = (sentence: string): string => sentence.replaceAll(mark, '');

/** A sentence of the console with parts that are English. */
export function PartlyEnglish({ children }: { children: string }) {
  return children
    .split(mark)
    .map((part, index) => (index % 2 === 0 ? part : <InEnglish key={index}>{part}</InEnglish>));
}
