import { randomUUID } from 'node:crypto';
import type { Accepted } from '../../src/ledger/acceptance.js';
import type { OnceKey } from '../../src/ledger/once-key.js';
import { newNotification } from './ledger.js';

/** The key of a request, of a publisher called `tester` unless another one is given. */
export const requestKey = (key: string = randomUUID(), more: Partial<OnceKey> = {}): OnceKey => ({
  application: 'tester',
  operation: 'publish',
  key,
  requestHash: 'hash',
  keepSeconds: 600,
  ...more,
});

export const contentKey = (key: string = randomUUID()): OnceKey => ({
  application: '',
  operation: 'deduplicate',
  key,
  requestHash: null,
  keepSeconds: 600,
});

/** A notification for one subscription, on these terms. */
export const onTerms = (terms: Partial<Accepted>): Accepted => ({ ...newNotification(1), ...terms });
