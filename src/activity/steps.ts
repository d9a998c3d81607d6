/*
 * Times are counted by steps, four to a doubling: what is read back of them is right to a fifth, from a millisecond to
 * days, and takes a hundred numbers.
 */

const stepsToADoubling = 4;
/** Longer than anything is kept waiting: some 24 days. */
export const longestStep = 124;

/** The step of a time: 0 is less than a millisecond. */
export function stepOf(ms: number): number {
  if (ms < 1) return 0;
  return Math.min(longestStep, 1 + Math.floor(stepsToADoubling * Math.log2(ms)));
}

/** Milliseconds below which all times of the step, and of those before it, are. */
const endOf = (step: number): number => 2 ** (step / stepsToADoubling);

/**
 * The time that a part of the counted ones took no longer than, in milliseconds; between the two ends of a step by
 * proportion.
 * @param counts how many, by step
 * @param part 0.95: nineteen of twenty
 * @returns undefined: none was counted
 */
export function quantileOf(counts: ReadonlyMap<number, number>, part: number): number | undefined {
  const steps = [...counts].filter(([, count]) => count > 0).sort(([one], [other]) => one - other);
  const wanted = part * steps.reduce((sum, [, count]) => sum + count, 0);
  let before = 0;
  for (const [step, count] of steps) {
    if (before + count >= wanted) {
      const from = step === 0 ? 0 : endOf(step - 1);
      return from + ((endOf(step) - from) * (wanted - before)) / count;
    }
    before += count;
  }
  return undefined;
}
