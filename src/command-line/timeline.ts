/** Seconds, and how they are called at the axis. */
const ticks: readonly [number, string][] = [
  [0, '0'],
  [1, '1 s'],
  [10, '10 s'],
  [60, '1 min'],
  [600, '10 min'],
  [3600, '1 h'],
  [36_000, '10 h'],
  [86_400, '1 d'],
  [864_000, '10 d'],
  [8_640_000, '100 d'],
];

/**
 * A line of time with a mark for each of `seconds`, and an axis below. Its scale is logarithmic, as delays grow: on an
 * even one all tries but the last ones would be one mark. Where marks fall together, their number is shown (`+` for ten
 * and more).
 * @param width of a line, in characters
 */
export function timeline(seconds: readonly number[], width: number): string {
  const last = Math.max(1, ...seconds);
  const placeOf = (second: number) => Math.round(((width - 1) * Math.log1p(second)) / Math.log1p(last));
  const counts = new Map<number, number>();
  for (const place of seconds.map(placeOf)) counts.set(place, (counts.get(place) ?? 0) + 1);
  const marks = Array.from({ length: width }, (_, place) => markFor(counts.get(place)));
  return `${marks.join('')}\n${axis(width, last, placeOf)}`;
}

function markFor(count: number | undefined): string {
  if (count === undefined) return '─';
  if (count === 1) return '●';
  return count < 10 ? String(count) : '+';
}

function axis(width: number, last: number, placeOf: (second: number) => number): string {
  let line = '';
  for (const [second, label] of ticks) {
    const place = placeOf(second);
    const isRoom = line === '' || line.length < place;
    if (second <= last && isRoom && place + label.length <= width) line = line.padEnd(place) + label;
  }
  return line;
}
