import * as z from 'zod';
import { defaultRetryPolicy, type RetryPolicy } from './retry-schedule.js';

const week = 604_800;

const limits = {
  maxRetries: z.int().min(0).max(100).describe('Attempts after the first.'),
  backoffFactor: z
    .union([z.literal(true).transform(() => 1), z.number().min(0.001).max(week)], {
      error: `Must be a number from 0.001 to ${week}, or true, which means 1.`,
    })
    .describe('Seconds; multiplies every delay. `true` means 1.'),
  baseFactor: z.number().min(1).max(1000).describe('The delay grows by this factor from failure to failure.'),
  maxDelaySeconds: z.int().min(1).max(week).describe('No delay is longer.'),
  jitter: z
    .number()
    .min(0)
    .max(1)
    .describe('Part of the delay that is varied at random, half of it down and half of it up.'),
};

/** Replaces the general policy: a field left out gets its default. */
export const generalPolicyInput = z
  .strictObject({
    maxRetries: limits.maxRetries.default(defaultRetryPolicy.maxRetries),
    backoffFactor: limits.backoffFactor.prefault(defaultRetryPolicy.backoffFactor),
    baseFactor: limits.baseFactor.default(defaultRetryPolicy.baseFactor),
    maxDelaySeconds: limits.maxDelaySeconds.default(defaultRetryPolicy.maxDelaySeconds),
    jitter: limits.jitter.default(defaultRetryPolicy.jitter),
  })
  .meta({ id: 'RetryPolicyInput' });

/** Replaces the override of one subscription: a field left out follows the general policy. */
export const policyOverrideInput = z.strictObject(limits).partial().meta({ id: 'RetryPolicyOverride' });
/** The same as parameters, which have no name of their own in the document. */
export const policyOverrideQuery = z.strictObject(limits).partial();
export type RetryPolicyOverride = Partial<RetryPolicy>;

/** The same fields as text. A value that is not a number stays text, so that the limits above refuse it. */
export function fieldsFromQuery(query: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      if (value === 'true') return [name, true];
      return [name, typeof value === 'string' && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) ? Number(value) : value];
    }),
  );
}
