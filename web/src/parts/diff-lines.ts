/** A line of a comparison: in both, only before, or only after. */
export interface Line {
  text: string;
  isChanged: boolean;
}

/** More lines than these on a side are shown without being compared. */
const mostCompared = 400;

/** A value as lines of JSON; a text as it is. */
export function linesOf(value: unknown): string[] {
  if (value === undefined) return [];
  return (typeof value === 'string' ? value : JSON.stringify(value, null, 2)).split('\n');
}

/** Which lines of each side the other does not have at their place (longest common subsequence). */
export function compareLines(before: readonly string[], after: readonly string[]): [before: Line[], after: Line[]] {
  const all = (lines: readonly string[]) => lines.map((text) => ({ text, isChanged: true }));
  if (before.length > mostCompared || after.length > mostCompared) return [all(before), all(after)];
  const width = after.length + 1;
  const common = new Uint16Array((before.length + 1) * width);
  for (let one = before.length - 1; one >= 0; one--)
    for (let other = after.length - 1; other >= 0; other--)
      common[one * width + other] =
        before[one] === after[other]
          ? common[(one + 1) * width + other + 1]! + 1
          : Math.max(common[(one + 1) * width + other]!, common[one * width + other + 1]!);
  const [left, right] = [all(before), all(after)];
  for (let one = 0, other = 0; one < before.length && other < after.length;) {
    if (before[one] === after[other]) {
      left[one++]!.isChanged = false;
      right[other++]!.isChanged = false;
    } else if (common[(one + 1) * width + other]! >= common[one * width + other + 1]!) one++;
    else other++;
  }
  return [left, right];
}
