import { expect, it, vi } from 'vitest';
import type { Config } from '../config/config.module.js';
import { systemClock } from '../infra/clock.js';
import type { SendingClaims } from '../ledger/claim-sending.service.js';
import type { Holds } from '../ledger/hold.service.js';
import type { DeliveriesInHand } from '../ledger/keep-in-hand.service.js';
import type { Outcome, Settlements } from '../ledger/settle.service.js';
import type { ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import type { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { DeliveryRecords } from './delivery-records.service.js';
import type { Turns } from './turns.service.js';

it('a subscription of which many calls are answered 410 at once is disabled once, and again where it was changed since', async () => {
  const ends: (() => void)[] = [];
  const disable = vi.fn<(id: string, version: number) => Promise<void>>(
    () => new Promise<void>((resolve) => ends.push(resolve)),
  );
  const none = {};
  const records = new DeliveryRecords(
    systemClock,
    { settle: () => Promise.resolve() } as unknown as Settlements,
    none as Holds,
    none as SendingClaims,
    none as DeliveriesInHand,
    { disable } as unknown as SubscriptionsService,
    { passOn: () => {} } as unknown as Turns,
    { settings: { FINAL_STATUSES: [410] } } as unknown as Config,
  );
  const gone = { state: 'failed', attempt: { status: 410 } } as unknown as Outcome;
  const answered = (version: number) => {
    const called = { id: 's', version } as unknown as ListedSubscription;
    return records.settle(newDelivery({}), gone, 'queued', new AbortController().signal, called);
  };
  const first = Promise.all([answered(1), answered(1), answered(1)]);
  const changed = answered(2);
  await vi.waitFor(() => expect(ends).toHaveLength(2));
  for (const end of ends) end();
  await Promise.all([first, changed]);
  expect(disable.mock.calls).toEqual([
    ['s', 1],
    ['s', 2],
  ]);
});
