/** Of a year that is being typed the first digits are a year as well. */
const firstYear = 1900;

/** Twice a year at the most the clock is set to another time. */
const halfDayMs = 43_200_000;

/** Hour and minute of a text without a zone. */
const localTime = /T(\d\d):(\d\d)(?::\d\d(?:\.\d+)?)?$/;

/**
 * A `datetime-local` in the zone of the viewer as a moment (ISO 8601); undefined: it is none, or not yet, or of the
 * hour that the clock skips in spring, which `Date` would take for the next one.
 */
export function momentOf(local: string): string | undefined {
  const time = new Date(local);
  if (Number.isNaN(time.getTime()) || time.getFullYear() < firstYear) return undefined;
  const typed = localTime.exec(local);
  if (typed && (Number(typed[1]) !== time.getHours() || Number(typed[2]) !== time.getMinutes())) return undefined;
  return time.toISOString();
}

/** As a `datetime-local` has it, without seconds where there are none; empty: it is no moment. */
export function localOf(iso: string | undefined): string {
  const time = new Date(iso ?? Number.NaN);
  if (Number.isNaN(time.getTime())) return '';
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, time.getSeconds() === 0 ? 16 : 19);
}

/** The other moment of the same `datetime-local`, in the hour that the clock shows twice in autumn; mostly none. */
export function otherMomentOf(iso: string): string | undefined {
  const time = new Date(iso);
  return [-halfDayMs, halfDayMs]
    .map((away) => {
      const offset = new Date(time.getTime() + away).getTimezoneOffset() - time.getTimezoneOffset();
      return new Date(time.getTime() + offset * 60_000);
    })
    .filter((other) => other.getTime() !== time.getTime())
    .map((other) => other.toISOString())
    .find((other) => localOf(other) === localOf(iso));
}

/**
 * The input of a field for a time: a moment, nothing (undefined), or something that is neither, which must not be taken
 * for nothing.
 * @param field its `value` is empty also where only a part is typed, and `badInput` then tells
 */
export function readTime(field: {
  value: string;
  validity: { badInput: boolean };
}): { moment: string | undefined } | 'wrong' {
  if (field.value === '') return field.validity.badInput ? 'wrong' : { moment: undefined };
  const moment = momentOf(field.value);
  return moment === undefined ? 'wrong' : { moment };
}
