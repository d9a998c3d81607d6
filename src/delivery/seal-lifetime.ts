const sixHours = 21_600;

/**
 * Milliseconds for which the outcome of an owner's deliveries is remembered.
 * @param secondsPerCustomer `*`: all other owners
 */
export function sealMsOf(ownerClientId: string, secondsPerCustomer: Readonly<Record<string, number>>): number {
  return (ownOf(secondsPerCustomer, ownerClientId) ?? ownOf(secondsPerCustomer, '*') ?? sixHours) * 1000;
}

/** A client may be called `constructor`. */
const ownOf = (record: Readonly<Record<string, number>>, key: string): number | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
