import type { ReactNode } from 'react';

/** A text that the API writes, which knows no other language: a screen reader has to read it as English. */
export function InEnglish({ children }: { children: ReactNode }) {
  return <span lang="en">{children}</span>;
}
