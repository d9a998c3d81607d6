const uuidLength = 16;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** In lower case, as the ledger has them. */
export const isUuid = (value: unknown): value is string => typeof value === 'string' && uuid.test(value);

/** @param hex its 32 digits */
export const asUuid = (hex: string): string => hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');

/** Short, and without a character that an address would have to escape. */
export const textOfUuids = (...uuids: string[]): string =>
  Buffer.from(uuids.join('').replaceAll('-', ''), 'hex').toString('base64url');

/** None are in a text that `textOfUuids` does not write. */
export function uuidsIn(text: string): string[] {
  const bytes = Buffer.from(text, 'base64url');
  // The decoder skips characters it cannot read; only a text that the encoder wrote encodes to itself again.
  if (bytes.length % uuidLength !== 0 || bytes.toString('base64url') !== text) return [];
  return Array.from({ length: bytes.length / uuidLength }, (_, nr) =>
    asUuid(bytes.toString('hex', nr * uuidLength, (nr + 1) * uuidLength)),
  );
}
