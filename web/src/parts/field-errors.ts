import { isProblem } from '../api/problem.ts';

/** The reasons that the API gives for one field of a form, and for the fields inside it. */
export function errorOf(error: unknown, field: string): string | undefined {
  if (!isProblem(error, 'invalid')) return undefined;
  const found = error.problem.invalidParams.filter(({ name }) => name === field || name.startsWith(`${field}.`));
  return found.length === 0 ? undefined : found.map(({ reason }) => reason).join(' ');
}
