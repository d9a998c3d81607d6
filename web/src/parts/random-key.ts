/**
 * 128 random bits. Not `crypto.randomUUID`, which browsers only have on a page that came over TLS, or from their own
 * machine.
 */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
