/** Of a year that is being typed the first digits are a year as well. */
const firstYear = 1900;

/** A `datetime-local` in the zone of the viewer as a moment (ISO 8601); undefined: it is none, or not yet. */
export function momentOf(local: string): string | undefined {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) || time.getFullYear() < firstYear ? undefined : time.toISOString();
}
