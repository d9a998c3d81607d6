/** Of a year that is being typed the first digits are a year as well. */
const firstYear = 1900;

/** A `datetime-local` in the zone of the viewer as a moment (ISO 8601); undefined: it is none, or not yet. */
export function momentOf(local: string): string | undefined {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) || time.getFullYear() < firstYear ? undefined : time.toISOString();
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
