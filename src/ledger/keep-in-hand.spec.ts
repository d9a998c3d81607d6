import { beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../config/config.module.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Statement } from '../infra/postgres/statement.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { DeliveriesInHand } from './keep-in-hand.service.js';

describe('the leases of what a process has in hand', () => {
  let written: number[];
  let inHand: DeliveriesInHand;

  beforeEach(() => {
    written = [];
    const query = async ({ name }: Statement, values: Record<string, unknown>) => {
      expect(name).toBe('keep-in-hand');
      written.push((values['item_generation'] as Buffer).readInt32BE(12)); // how many there are in an array of Postgres
      return [];
    };
    inHand = new DeliveriesInHand(
      { query } as unknown as Postgres,
      { processId: 'this process' } as unknown as Heartbeat,
      { settings: { DELIVERY_LEASE_MS: 180_000 } } as unknown as Config,
    );
  });

  const deliveries = (count: number) => Array.from({ length: count }, () => newDelivery({}));

  it('are written a thousand at a time after a burst, so that results wait for none of them long', async () => {
    await inHand.keep(deliveries(2050));
    expect(written).toEqual([1024, 1024, 2]);
  });

  it('of many chunks that come to their time together are one statement', async () => {
    await Promise.all(Array.from({ length: 80 }, () => inHand.keep(deliveries(2))));
    expect(written).toEqual([160]);
  });
});
