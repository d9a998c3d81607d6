import type { EntryKey } from './find-entries.js';

/** The year 9999 ends. */
const lastMicrosecond = 253_402_300_799_999_999n;

/** Where a list of entries goes on, as text that callers send back as it is. */
export function toCursor({ at, nr }: EntryKey): string {
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64BE(timeAsMicroseconds(at));
  bytes.writeBigInt64BE(BigInt(nr), 8);
  return bytes.toString('base64url');
}

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): EntryKey | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  // The decoder skips characters it cannot read; only a text that the encoder wrote encodes to itself again.
  if (bytes.length !== 16 || bytes.toString('base64url') !== cursor) return undefined;
  const [at, nr] = [bytes.readBigInt64BE(), bytes.readBigInt64BE(8)];
  if (at < 0n || at > lastMicrosecond || nr < 0n) return undefined;
  return { at: microsecondsAsTime(at), nr: String(nr) };
}

/** ISO 8601 with six digits; a `Date` has three. */
export function microsecondsAsTime(microseconds: bigint): string {
  const milliseconds = new Date(Number(microseconds / 1000n)).toISOString();
  return `${milliseconds.slice(0, -1)}${String(microseconds % 1000n).padStart(3, '0')}Z`;
}

const timeAsMicroseconds = (time: string): bigint =>
  BigInt(Date.parse(`${time.slice(0, -4)}Z`)) * 1000n + BigInt(time.slice(-4, -1));
