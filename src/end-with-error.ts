/**
 * Ends this program with status 1, and says why.
 * @param expected kinds of errors whose message is for an operator and has the remedy; any other error is shown with
 *   its stack
 */
export function endWithError(error: unknown, expected: readonly (new (...parameters: never[]) => Error)[]): never {
  console.error(expected.some((kind) => error instanceof kind) ? (error as Error).message : error);
  process.exit(1);
}
