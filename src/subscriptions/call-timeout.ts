import { callMsBound } from '../config/settings-together.js';
import type { Settings } from '../config/settings.js';
import { ValidationProblem } from '../infra/http/problem.js';
import type { Subscription } from './subscription.js';

type LeaseSettings = Pick<Settings, 'DELIVERY_LEASE_MS' | 'TTL_LOCK_TIME_LIMIT_MS'>;

/**
 * Milliseconds that one call to the receiver of a subscription may take in all. A process whose lease is shorter than
 * that of the one where the time was set makes shorter calls.
 */
export function callTimeoutMs(
  { timeoutSeconds }: Pick<Subscription, 'timeoutSeconds'>,
  settings: LeaseSettings & Pick<Settings, 'NOTIFICATION_REQUESTS_TIMEOUT'>,
): number {
  return Math.min((timeoutSeconds ?? settings.NOTIFICATION_REQUESTS_TIMEOUT) * 1000, callMsBound(settings) - 1);
}

/** @throws {ValidationProblem} for a time that the lease of a delivery does not cover */
export function checkTimeout(timeoutSeconds: number, settings: LeaseSettings): void {
  const boundMs = callMsBound(settings);
  if (timeoutSeconds * 1000 < boundMs) return;
  const reason = `Must be less than ${boundMs / 1000}, or DELIVERY_LEASE_MS must be longer: it exceeds TTL_LOCK_TIME_LIMIT_MS, a call and 10 s together, or a delivery could be sent twice.`;
  throw new ValidationProblem([{ name: 'timeoutSeconds', code: 'exceeds-lease', reason }]);
}
