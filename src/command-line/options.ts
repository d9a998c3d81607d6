import { InvalidArgumentError } from 'commander';
import { isUuid } from '../infra/uuid-text.js';

/** @throws {InvalidArgumentError} which Commander shows with the option's name */
export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`);
  };

export const positiveNumber = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It is a number above 0.');
};

/** For an option that may be repeated. */
export const repeated = (text: string, before: string[] | undefined): string[] => [...(before ?? []), text];

const units: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A date, or a date and a time with or without a zone. Without a time it is the beginning of that day. */
const timeOfDay = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?:Z|([+-]\d\d):?(\d\d))?)?$/i;

/**
 * A time of a command line: ISO 8601, or how long ago it was (`30s`, `10m`, `2h`, `3d`).
 * @throws {InvalidArgumentError}
 */
export const timeInPast = (text: string): string => timeFrom(text, -1);

/** Likewise, where `10m` is ten minutes from now. */
export const timeAhead = (text: string): string => timeFrom(text, 1);

function timeFrom(text: string, direction: 1 | -1): string {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(Date.now() + direction * Number(count) * units[unit!]!).toISOString();
  const time = parsed(text);
  if (!Number.isNaN(time)) return new Date(time).toISOString();
  const how = direction === 1 ? 'how long from now' : 'how long ago';
  throw new InvalidArgumentError(`It is a time such as 2026-11-22T08:00Z, or ${how}, such as 30s, 10m, 2h, 3d.`);
}

/**
 * UTC where it does not say otherwise, as all that is shown is. `Date.parse` takes much else, such as an hour of one
 * digit, in the zone of this machine.
 */
function parsed(text: string): number {
  const [, date, time = '00:00', hours, minutes] = timeOfDay.exec(text) ?? [];
  // It also takes the 30th of February, for the 2nd of March.
  const midnight = new Date(`${date}T00:00Z`);
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(date!)) return Number.NaN;
  return Date.parse(`${date}T${time}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`);
}

/** @throws {InvalidArgumentError} */
export const id = (text: string): string => {
  const lower = text.toLowerCase();
  if (isUuid(lower)) return lower;
  throw new InvalidArgumentError('It is a UUID, as the lists show it.');
};

export const repeatedId = (text: string, before: string[] | undefined): string[] => repeated(id(text), before);
