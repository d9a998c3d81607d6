import { describe, expect, it } from 'vitest';
import { readSettings } from '../config/settings.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { callTimeoutMs, checkTimeout } from './call-timeout.js';

describe('the time that a call may take', () => {
  // A call must take less than 50 s.
  const settings = readSettings({
    NOTIFICATION_REQUESTS_TIMEOUT: '10',
    TTL_LOCK_TIME_LIMIT_MS: '120000',
    DELIVERY_LEASE_MS: '180000',
  });

  it.each([
    [null, 10_000],
    [0.1, 100],
    [2.5, 2500],
    [49.9, 49_900],
  ])('is the subscription’s own, or else that of the setting: %s s', (timeoutSeconds, expected) => {
    expect(callTimeoutMs({ timeoutSeconds }, settings)).toBe(expected);
    if (timeoutSeconds !== null) checkTimeout(timeoutSeconds, settings);
  });

  it.each([50, 300])('cannot be set where the lease of a delivery does not cover it: %s s', (timeoutSeconds) => {
    const check = () => checkTimeout(timeoutSeconds, settings);
    expect(check).toThrow(ValidationProblem);
    expect(check).toThrow(
      expect.objectContaining({
        extra: {
          invalidParams: [
            { name: 'timeoutSeconds', code: 'exceeds-lease', reason: expect.stringContaining('Must be less than 50,') },
          ],
        },
      }),
    );
  });

  it('is cut short by a process whose lease is shorter than that of the one where it was set', () => {
    expect(callTimeoutMs({ timeoutSeconds: 300 }, settings)).toBe(49_999);
  });
});
