const uuidLength = 16;

/** Where a list of notifications goes on, as text that callers send back as it is. */
export const toCursor = (id: string): string => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url');

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): string | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  // The decoder skips characters it cannot read; only a text that the encoder wrote encodes to itself again.
  if (bytes.length !== uuidLength || bytes.toString('base64url') !== cursor) return undefined;
  return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}
