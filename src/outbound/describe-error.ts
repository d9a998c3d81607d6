import { lookupBusy } from './shared-lookup.js';

/**
 * This machine has no more files, ports or memory for sockets, or no network, or is busy with names whose servers do
 * not answer.
 */
const codesOfMachine: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
  'ENETDOWN',
  lookupBusy,
]);

/**
 * These say nothing of the endpoint either: no answer from a name server, which may be that of the receiver, and what
 * callbacks may not use, which nobody called.
 */
const ourCodes: ReadonlySet<string> = new Set([...codesOfMachine, 'EAI_AGAIN', 'ADDRESS_REFUSED', 'URL_REFUSED']);

/** Whether this machine lacks what a connection to any receiver needs; with several addresses, to each of them. */
export const isTroubleOfMachine = (error: Error): boolean => isEach(error, codesOfMachine);

/** Whether the error says nothing of the receiver; of a name with several addresses, that of none. */
export const isOurTrouble = (error: Error): boolean => isEach(error, ourCodes);

function isEach(error: Error, codes: ReadonlySet<string>): boolean {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.every((each) => isEach(each as Error, codes));
  const code = codeOfCall(error);
  return code !== undefined && codes.has(code);
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

export function codeOfCall(error: Error): string | undefined {
  const told = oneOf(error);
  return codeOf(told.cause) ?? codeOf(told);
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
