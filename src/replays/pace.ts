/** Seconds of its rate that are not lost when a step comes late; no more may be sent at once. */
const burstSeconds = 1;
/** Between two steps of one that has a rate. */
const stepMs = 200;

export interface Credit {
  /** Deliveries that its rate allowed and that were not sent, when it was reckoned last, and the seconds since then. */
  credit: number;
  seconds: number;
}

/** @returns the number that the rate allows now; at least one whole delivery can be saved up, however slow it is */
export const creditNow = (ratePerSecond: number, { credit, seconds }: Credit): number =>
  Math.min(credit + ratePerSecond * seconds, Math.max(1, ratePerSecond * burstSeconds));

/**
 * Milliseconds until the next step.
 * @param credit that is left: where it is enough for a delivery, the step was at its end for another reason
 */
export function nextStepMs(ratePerSecond: number | null, credit: number): number {
  if (ratePerSecond === null || credit >= 1) return 0;
  return Math.max(stepMs, Math.ceil(((1 - credit) / ratePerSecond) * 1000));
}
