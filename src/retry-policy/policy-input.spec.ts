import { describe, expect, it } from 'vitest';
import { checkInput } from '../infra/http/check-input.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { fieldsFromQuery, generalPolicyInput, policyOverrideInput } from './policy-input.js';
import { defaultRetryPolicy } from './retry-schedule.js';

const policy = (input: unknown) => checkInput(generalPolicyInput, input);

function refusalOf(input: unknown): string[] {
  try {
    policy(input);
  } catch (error) {
    if (error instanceof ValidationProblem) {
      return (error.extra.invalidParams ?? []).map(({ name, code }) => `${name} ${code}`);
    }
    throw error;
  }
  return [];
}

describe('the input of a retry policy', () => {
  it('uses the default of every field that is left out', () => {
    expect(policy({})).toEqual(defaultRetryPolicy);
    expect(policy({ maxRetries: 2 })).toEqual({ ...defaultRetryPolicy, maxRetries: 2 });
  });

  it('has in an override only the fields that were given', () => {
    expect(checkInput(policyOverrideInput, { jitter: 0.5 })).toEqual({ jitter: 0.5 });
  });

  it('reads a backoff factor of true as 1', () => {
    expect(policy({ backoffFactor: true }).backoffFactor).toBe(1);
  });

  it.each<[object, object]>([
    [
      { maxRetries: 0, backoffFactor: 0.001, baseFactor: 1, maxDelaySeconds: 1, jitter: 0 },
      { maxRetries: 100, backoffFactor: 604_800, baseFactor: 1000, maxDelaySeconds: 604_800, jitter: 1 },
    ],
  ])('accepts the lowest and the highest value of every field', (lowest, highest) => {
    expect(policy(lowest)).toEqual(lowest);
    expect(policy(highest)).toEqual(highest);
  });

  it.each<[object, string]>([
    [{ maxRetries: -1 }, 'maxRetries min_value'],
    [{ maxRetries: 101 }, 'maxRetries max_value'],
    [{ maxRetries: 1.5 }, 'maxRetries invalid'],
    [{ maxRetries: '7' }, 'maxRetries invalid'],
    [{ maxRetries: null }, 'maxRetries null'],
    [{ backoffFactor: 0 }, 'backoffFactor min_value'],
    [{ backoffFactor: 604_801 }, 'backoffFactor max_value'],
    [{ backoffFactor: false }, 'backoffFactor invalid'],
    [{ backoffFactor: '25' }, 'backoffFactor invalid'],
    [{ baseFactor: 0.9 }, 'baseFactor min_value'],
    [{ baseFactor: 1001 }, 'baseFactor max_value'],
    [{ baseFactor: true }, 'baseFactor invalid'],
    [{ maxDelaySeconds: 0 }, 'maxDelaySeconds min_value'],
    [{ maxDelaySeconds: 604_801 }, 'maxDelaySeconds max_value'],
    [{ maxDelaySeconds: 0.5 }, 'maxDelaySeconds invalid'],
    [{ jitter: -0.1 }, 'jitter min_value'],
    [{ jitter: 1.1 }, 'jitter max_value'],
    [{ jitter: [] }, 'jitter invalid'],
    [JSON.parse('{"baseFactor":1e999}') as object, 'baseFactor invalid'],
    [{ maxRetry: 3 }, 'maxRetry unknown'],
  ])('refuses %j', (input, refusal) => {
    expect(refusalOf(input)).toContain(refusal);
  });

  it('reads numbers and true from a query, and leaves the rest to be refused', () => {
    expect(
      fieldsFromQuery({
        maxRetries: '3',
        backoffFactor: 'true',
        baseFactor: '1.5e0',
        jitter: '',
        maxDelaySeconds: '0x10',
      }),
    ).toEqual({ maxRetries: 3, backoffFactor: true, baseFactor: 1.5, jitter: '', maxDelaySeconds: '0x10' });
  });
});
