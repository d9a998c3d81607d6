import type { IncomingHttpHeaders } from 'node:http';
import { longestAskedMs } from '../ledger/open-endpoints.js';

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * Milliseconds that a receiver asks to wait, at most a day; null: nothing, or nothing that can be read. A date is read
 * by the receiver's own clock where its answer says what that shows.
 */
export function askedDelayMs(headers: IncomingHttpHeaders, nowMs: number): number | null {
  const value = firstOf(headers['retry-after']);
  if (value === undefined) return null;
  const theirNow = parseHttpDate(firstOf(headers.date)?.trim() ?? '', nowMs);
  const asked = parseRetryAfter(value, theirNow ?? nowMs);
  return asked === undefined ? null : Math.min(longestAskedMs, asked);
}

/**
 * A header that came several times is a list, in spite of its type; nothing must break on it after the call was made.
 */
const firstOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? String(value[0]) : value;

/**
 * Milliseconds a `Retry-After` asks to wait: seconds, or one of the three date forms of HTTP (RFC 9110 §10.2.3,
 * §5.6.7); a date in the past is 0. Undefined for anything else, which is to be ignored.
 */
export function parseRetryAfter(value: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = parseHttpDate(text, nowMs);
  return at === undefined ? undefined : Math.max(0, at - nowMs);
}

function parseHttpDate(text: string, nowMs: number): number | undefined {
  const imf = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/.exec(text);
  if (imf) return utc(imf[3]!, imf[2]!, imf[1]!, imf[4]!, imf[5]!, imf[6]!);
  const rfc850 = /^[A-Z][a-z]+, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/.exec(text);
  if (rfc850) {
    // A two-digit year more than 50 years ahead means the century before (RFC 9110 §5.6.7).
    const thisYear = new Date(nowMs).getUTCFullYear();
    let year = Math.floor(thisYear / 100) * 100 + Number(rfc850[3]);
    if (year > thisYear + 50) year -= 100;
    return utc(String(year), rfc850[2]!, rfc850[1]!, rfc850[4]!, rfc850[5]!, rfc850[6]!);
  }
  const asctime = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/.exec(text);
  if (asctime) return utc(asctime[6]!, asctime[1]!, asctime[2]!.trim(), asctime[3]!, asctime[4]!, asctime[5]!);
  return undefined;
}

function utc(
  year: string,
  month: string,
  day: string,
  hour: string,
  minute: string,
  second: string,
): number | undefined {
  const monthIndex = months.indexOf(month);
  if (monthIndex < 0 || Number(day) < 1 || Number(day) > 31) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  const ms = Date.UTC(Number(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second));
  // 31 February would be taken for 3 March.
  return new Date(Date.UTC(Number(year), monthIndex, Number(day))).getUTCMonth() === monthIndex ? ms : undefined;
}
