import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';
import { answer, Receiver } from '../support/receiver.js';
import { HerautProcess } from '../support/spawn-heraut.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

describe.each(stacks)('a failing receiver on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let heraut: HerautProcess;
  let receiver: Receiver;

  beforeEach(async () => {
    [prepared, receiver] = [await stack.prepare(), await Receiver.start()];
    // The deliveries of a killed process are free again once their lease is over; short, so that a test can wait for
    // it.
    const leases = { TTL_LOCK_TIME_LIMIT_MS: '1000', NOTIFICATION_REQUESTS_TIMEOUT: '5', DELIVERY_LEASE_MS: '16100' };
    heraut = await HerautProcess.start({ settings: { ...prepared.settings, ...leases } });
    expect((await heraut.call('POST', '/api/v1/kanaal', { body: { naam: 'cases' } })).status).toBe(201);
    const abonnement = { callbackUrl: receiver.url, auth: 'Bearer secret', kanalen: [{ naam: 'cases' }] };
    expect((await heraut.call('POST', '/api/v1/abonnement', { body: abonnement })).status).toBe(201);
  });

  afterEach(async () => {
    await heraut.kill9();
    await receiver.stop();
    await prepared.release();
  });

  it('is called again when the policy says so, with the same id and a higher attempt', async () => {
    await waitAfterEachFailure(1);
    receiver.next(answer(503), answer(500));
    await publish();
    await eventually(() => receiver.notifications.length === 3, 'three attempts');
    expect(new Set(receiver.notifications.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.notifications.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2', '3']);
    expect(receiver.notifications.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill('Bearer secret'));
    for (const waitedMs of waits()) expect(waitedMs).toBeGreaterThanOrEqual(950);
    await eventually(async () => (await stateOfTheDelivery()) === 'delivered', 'it to be delivered');
  });

  it('is called again on schedule although the process was killed in the middle of the wait', async () => {
    await waitAfterEachFailure(10); // long enough to be killed in
    receiver.next(answer(503));
    await publish();
    await eventually(async () => (await stateOfTheDelivery()) === 'waiting', 'the wait');
    await heraut.kill9();
    await heraut.start();
    await eventually(() => receiver.notifications.length === 2, 'the second attempt');
    expect(receiver.notifications[1]?.headers['webhook-attempt']).toBe('2');
    expect(receiver.notifications[1]?.headers['webhook-id']).toBe(receiver.notifications[0]?.headers['webhook-id']);
    expect(waits()[0]).toBeGreaterThanOrEqual(9950);
    await eventually(async () => (await stateOfTheDelivery()) === 'delivered', 'it to be delivered');
    expect(receiver.notifications).toHaveLength(2);
  });

  async function waitAfterEachFailure(seconds: number): Promise<void> {
    const policy = { maxRetries: 4, backoffFactor: seconds, baseFactor: 1, maxDelaySeconds: seconds, jitter: 0 };
    expect((await heraut.call('PUT', '/admin/v1/retry-policy', { body: policy })).status).toBe(200);
  }

  async function publish(): Promise<void> {
    const body = notificatie('cases');
    expect((await heraut.call('POST', '/api/v1/notificaties', { body })).status).toBe(201);
  }

  async function stateOfTheDelivery(): Promise<string | undefined> {
    const { body } = await heraut.call('GET', '/admin/v1/deliveries');
    return (body as { deliveries: { state: string }[] }).deliveries[0]?.state;
  }

  /** Milliseconds between one attempt and the next. */
  function waits(): number[] {
    const times = receiver.notifications.map(({ at }) => at);
    return times.slice(1).map((at, index) => at - times[index]!);
  }
});
