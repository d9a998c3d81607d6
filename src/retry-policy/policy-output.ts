import * as z from 'zod';
import { planAttempts, formatDuration, type RetryPolicy } from './retry-schedule.js';
import type { RetryPolicyOverride } from './policy-input.js';

const policyFields = {
  maxRetries: z.int(),
  backoffFactor: z.number(),
  baseFactor: z.number(),
  maxDelaySeconds: z.int(),
  jitter: z.number(),
};

export const generalPolicyOutput = z.strictObject(policyFields).meta({ id: 'RetryPolicy' });

export const subscriptionPolicyOutput = z
  .strictObject({
    ...policyFields,
    overrides: z
      .strictObject(policyFields)
      .partial()
      .describe('The fields in which this subscription differs; the others follow the general policy.'),
  })
  .meta({ id: 'SubscriptionRetryPolicy' });

export const previewOutput = z
  .strictObject({
    policy: generalPolicyOutput,
    attempts: z.array(
      z.strictObject({
        attempt: z.int().describe('Counts from 1.'),
        delaySeconds: z.number().describe('After the attempt before, jitter left out.'),
        delay: z.string(),
        shortestDelaySeconds: z.number().describe('With jitter, at least.'),
        longestDelaySeconds: z.number().describe('With jitter, at most.'),
        elapsedSeconds: z.number().describe('Since the first attempt, jitter left out.'),
        elapsed: z.string().describe('The same for people, e.g. `23 h 55 m 25 s`.'),
      }),
    ),
  })
  .meta({ id: 'RetryPolicyPreview' });

export function subscriptionPolicy(
  policy: RetryPolicy,
  overrides: RetryPolicyOverride = {},
): z.output<typeof subscriptionPolicyOutput> {
  return { ...policy, overrides };
}

/** Every attempt of a delivery that never succeeds, with numbers to compute with and texts to read. */
export function preview(policy: RetryPolicy): z.output<typeof previewOutput> {
  return {
    policy,
    attempts: planAttempts(policy).map((planned) => ({
      attempt: planned.attempt,
      delaySeconds: toMilliseconds(planned.plainSeconds),
      delay: formatDuration(planned.plainSeconds),
      shortestDelaySeconds: toMilliseconds(planned.shortestSeconds),
      longestDelaySeconds: toMilliseconds(planned.longestSeconds),
      elapsedSeconds: toMilliseconds(planned.elapsedSeconds),
      elapsed: formatDuration(planned.elapsedSeconds),
    })),
  };
}

// Sums of decimal fractions end in digits that mean nothing (0.1 + 0.2); timers do not go finer than a millisecond.
const toMilliseconds = (seconds: number): number => Math.round(seconds * 1000) / 1000;
