/**
 * Errors that this machine or its name server has, whichever receiver is called: no more files, ports or memory for
 * sockets, no network, no answer from the name server. And what callbacks may not use, which nobody called.
 */
const ourCodes: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
  'ENETDOWN',
  'EAI_AGAIN',
  'ADDRESS_REFUSED',
  'URL_REFUSED',
]);

/** Whether the error says nothing of the receiver; of a name with several addresses, that of none. */
export function isOurTrouble(error: Error): boolean {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.every((each) => isOurTrouble(each as Error));
  const code = codeOfCall(error);
  return code !== undefined && ourCodes.has(code);
}

/** The error's code where it has one: stable, and without texts that vary. */
export function describeError(error: Error): string {
  const code = codeOfCall(error);
  const { message } = oneOf(error);
  return code ? `${code}: ${message}` : message;
}

/** Of a name with several addresses each has failed; one of them says enough. */
const oneOf = (error: Error): Error =>
  error instanceof AggregateError ? ((error.errors[0] as Error | undefined) ?? error) : error;

function codeOfCall(error: Error): string | undefined {
  const told = oneOf(error);
  return codeOf(told.cause) ?? codeOf(told);
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
