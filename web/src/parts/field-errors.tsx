import type { ReactNode } from 'react';
import { isProblem } from '../api/problem.ts';
import { InEnglish } from './in-english.tsx';

/** The reasons that the API gives for one field of a form, and for the fields inside it. */
export function errorOf(error: unknown, field: string): ReactNode {
  if (!isProblem(error, 'invalid')) return undefined;
  const found = error.problem.invalidParams.filter(({ name }) => name === field || name.startsWith(`${field}.`));
  return found.length === 0 ? undefined : <InEnglish>{found.map(({ reason }) => reason).join(' ')}</InEnglish>;
}
