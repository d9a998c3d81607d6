/** The error's code where it has one: stable, and without texts that vary. */
export function describeError(error: Error): string {
  // Of a name with several addresses each has failed; one of them says enough.
  const told = error instanceof AggregateError ? ((error.errors[0] as Error | undefined) ?? error) : error;
  const code = codeOf(told.cause) ?? codeOf(told);
  return code ? `${code}: ${told.message}` : told.message;
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
