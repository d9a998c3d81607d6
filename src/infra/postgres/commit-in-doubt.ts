import { isRefused } from './postgres-errors.js';

/**
 * Errors of a COMMIT that was not answered. Marked, and not put into another error: those who look for a code find it
 * where it was.
 */
const marked = new WeakSet<Error>();

/** Marks what a COMMIT failed of, unless it is known that it did not take place. */
export function markCommit(error: unknown): void {
  if (error instanceof Error && !isRefused(error)) marked.add(error);
}

/** Whether the change that failed may have been done. */
export const isCommitInDoubt = (error: unknown): boolean => error instanceof Error && marked.has(error);
