/** Errors of making a connection. Marked, because one that breaks later fails of the same, by message and code. */
const marked = new WeakSet<Error>();

/** Nothing of anybody's work was sent yet. */
export function markNotConnected(error: unknown): void {
  if (error instanceof Error) marked.add(error);
}

/** The making of a connection, or its settings. */
export async function orMarkNotConnected<T>(made: Promise<T>): Promise<T> {
  try {
    return await made;
  } catch (error) {
    markNotConnected(error);
    throw error;
  }
}

/** Also where it took too long, for which the pool puts another error around it. */
export const isMarkedNotConnected = (error: unknown): boolean =>
  error instanceof Error && (marked.has(error) || marked.has(error.cause as Error));
