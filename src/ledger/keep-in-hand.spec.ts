import { expect, it } from 'vitest';
import type { Config } from '../config/config.module.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Statement } from '../infra/postgres/statement.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { DeliveriesInHand } from './keep-in-hand.service.js';

it('writes the leases of all that a process has in hand after a burst a thousand at a time, so that results wait for none of them long', async () => {
  const written: number[] = [];
  const query = async ({ name }: Statement, values: Record<string, unknown>) => {
    expect(name).toBe('keep-in-hand');
    written.push((values['item_generation'] as Buffer).readInt32BE(12)); // how many there are in an array of Postgres
    return [];
  };
  const inHand = new DeliveriesInHand(
    { query } as unknown as Postgres,
    { processId: 'this process' } as unknown as Heartbeat,
    { settings: { DELIVERY_LEASE_MS: 180_000 } } as unknown as Config,
  );
  await inHand.keep(Array.from({ length: 2050 }, () => newDelivery({})));
  expect(written).toEqual([1024, 1024, 2]);
});
