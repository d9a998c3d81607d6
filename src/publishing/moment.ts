export interface Moment {
  /** UTC with `Z`, and the decimals that were given, at most six. */
  text: string;
  /** Since 1970. */
  ms: number;
}

// ISO 8601 as publishers write it: a date, or a date and a time with or without seconds, decimals and offset.
const shape =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6})\d*)?)?\s*(?:[Zz]|([+-])(\d{2})(?::?(\d{2}))?)?)?$/;

/**
 * Reads a moment. A date alone is its midnight; without an offset it is UTC. Decimals beyond the microsecond are
 * dropped. undefined: the text is no moment.
 */
export function readMoment(text: string): Moment | undefined {
  const match = shape.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour = '00', minute = '00', second = '00', decimals, sign, offsetHour, offsetMinute] =
    match;
  const [y, mo, d, h, mi, s] = [Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second)];
  const offset = sign ? (sign === '-' ? -1 : 1) * (Number(offsetHour) * 60 + Number(offsetMinute ?? 0)) : 0;
  if (y === 0 || h > 23 || mi > 59 || s > 59 || Math.abs(offset) >= 24 * 60) return undefined;
  const date = new Date(0);
  // Not Date.UTC, which reads the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(y, mo - 1, d);
  if (date.getUTCMonth() !== mo - 1 || date.getUTCDate() !== d) return undefined;
  const ms = date.setUTCHours(h, mi - offset, s);
  if (date.getUTCFullYear() < 1 || date.getUTCFullYear() > 9999) return undefined;
  const upToSecond = date.toISOString().slice(0, 19);
  if (decimals === undefined) return { text: `${upToSecond}Z`, ms };
  return { text: `${upToSecond}.${decimals}Z`, ms: ms + Number(decimals.padEnd(6, '0')) / 1000 };
}
