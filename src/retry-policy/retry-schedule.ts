/** How failed deliveries are repeated; the fields as the admin API names them. */
export interface RetryPolicy {
  /** Attempts after the first. */
  maxRetries: number;
  /** Seconds; multiplies every delay. */
  backoffFactor: number;
  /** The delay grows by this factor from failure to failure. */
  baseFactor: number;
  /** Seconds; no delay is longer. */
  maxDelaySeconds: number;
  /** Part of the delay, 0 to 1, that is varied at random: half of it down, half of it up. */
  jitter: number;
}

/** Open Notificaties' documented defaults: eight attempts over 23 h 55 m 25 s. Why these: docs/decisions/0005. */
export const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 7,
  backoffFactor: 25,
  baseFactor: 4,
  maxDelaySeconds: 52_000,
  jitter: 0,
};

export interface DelayRange {
  shortestSeconds: number;
  /** The value of the formula without jitter. */
  plainSeconds: number;
  longestSeconds: number;
}

/**
 * The delay after a failure, as a range that jitter draws from. The cap holds for the longest delay too, and the range
 * stays wide at the cap: receivers that came back together must not be hit together just because all are at the cap.
 * @param failures failures before this one, counts from 0
 */
export function delayRange(policy: RetryPolicy, failures: number): DelayRange {
  // A large power may be Infinity; the cap turns it into a delay again.
  const plainSeconds = Math.min(policy.maxDelaySeconds, policy.backoffFactor * policy.baseFactor ** failures);
  const half = (plainSeconds * policy.jitter) / 2;
  return {
    shortestSeconds: plainSeconds - half,
    plainSeconds,
    longestSeconds: Math.min(policy.maxDelaySeconds, plainSeconds + half),
  };
}

/**
 * Seconds (with a fraction) to wait after a failure.
 * @param failures failures before this one, counts from 0
 * @param random at least 0, less than 1
 */
export function delaySeconds(policy: RetryPolicy, failures: number, random: number): number {
  const { shortestSeconds, longestSeconds } = delayRange(policy, failures);
  return policy.jitter === 0 ? shortestSeconds : shortestSeconds + random * (longestSeconds - shortestSeconds);
}

export interface PlannedAttempt extends DelayRange {
  /** Counts from 1. */
  attempt: number;
  /** Seconds since the first attempt, jitter left out. */
  elapsedSeconds: number;
}

/** Every attempt of a delivery that never succeeds, provided that each fails at once. */
export function planAttempts(policy: RetryPolicy): PlannedAttempt[] {
  const planned: PlannedAttempt[] = [
    { attempt: 1, shortestSeconds: 0, plainSeconds: 0, longestSeconds: 0, elapsedSeconds: 0 },
  ];
  let elapsedSeconds = 0;
  for (let failures = 0; failures < policy.maxRetries; failures += 1) {
    const range = delayRange(policy, failures);
    elapsedSeconds += range.plainSeconds;
    planned.push({ attempt: failures + 2, ...range, elapsedSeconds });
  }
  return planned;
}

/** Seconds from the first attempt of a delivery that never succeeds to its last one, jitter left out. */
const spanSeconds = (policy: RetryPolicy): number => planAttempts(policy).at(-1)!.elapsedSeconds;

/** A policy with few retries says little about how long its deliveries are worth waiting for. */
const leastParkedSeconds = 3600;

/**
 * How a delivery is repeated for trouble of ours, once that costs attempts (docs/decisions/0075): by its own policy, or
 * over that hour where the policy ends before.
 */
export const policyForOurTrouble = (policy: RetryPolicy): RetryPolicy =>
  spanSeconds(policy) < leastParkedSeconds ? patientPolicy : policy;

const patientPolicy: RetryPolicy = {
  maxRetries: 12,
  backoffFactor: 300,
  baseFactor: 1,
  maxDelaySeconds: 300,
  jitter: 0,
};

/**
 * Seconds that a delivery may be held because its endpoint is parked: as long as its policy would have gone on trying.
 */
export const longestParkedSeconds = (policy: RetryPolicy): number => Math.max(leastParkedSeconds, spanSeconds(policy));

const units = [
  { name: 'd', milliseconds: 86_400_000 },
  { name: 'h', milliseconds: 3_600_000 },
  { name: 'm', milliseconds: 60_000 },
] as const;

/** `23 h 55 m 25 s`; units that are zero are left out, fractions go down to the millisecond. */
export function formatDuration(seconds: number): string {
  let rest = Math.round(seconds * 1000);
  const parts: string[] = [];
  for (const { name, milliseconds } of units) {
    const count = Math.floor(rest / milliseconds);
    if (count > 0) parts.push(`${count} ${name}`);
    rest -= count * milliseconds;
  }
  if (rest > 0 || parts.length === 0) parts.push(`${rest / 1000} s`);
  return parts.join(' ');
}
