import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation, type DeliveryBody } from '../support/installation.js';
import { answer, Receiver, type Behaviour } from '../support/receiver.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

/** Longer than any test: a delivery that waits this long is sent only when an operator retries it. */
const forLong = { maxRetries: 3, backoffFactor: 600 };

describe.each(stacks)('a delivery that fails on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let channel: string;
  let subscription: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
    heraut = await Installation.start(prepared);
  });

  afterAll(async () => {
    await heraut.end();
    await prepared.release();
  });

  beforeEach(async () => {
    receiver = await Receiver.start();
    channel = await heraut.createChannel();
    subscription = await heraut.subscribe({ channel, url: receiver.url });
  });

  afterEach(async () => {
    await heraut.unsubscribe(subscription);
    await receiver.stop();
  });

  it('is repeated after each delay of the policy until it is answered, and every attempt can be read', async () => {
    await heraut.setRetryPolicy({ maxRetries: 5, backoffFactor: 0.2, baseFactor: 2 });
    receiver.next(answer(500, {}, 'first'), answer(400, {}, 'second'), answer(503, {}, 'third'));
    const { id } = await heraut.publish(channel);
    const { attempts, attemptCount } = await heraut.becomes('delivered', id, subscription);
    expect(attemptCount).toBe(4);
    expect(attempts).toMatchObject([
      { number: 1, status: 500, error: 'HTTP 500: first' },
      { number: 2, status: 400, error: 'HTTP 400: second' },
      { number: 3, status: 503, error: 'HTTP 503: third' },
      { number: 4, status: 204, error: null },
    ]);
    expect(receiver.notifications.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2', '3', '4']);
    expect(new Set(receiver.notifications.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([id]));
    expect(new Set(receiver.notifications.map(({ text }) => text)).size).toBe(1);
    const waits = waitsBetween(receiver.notifications.map(({ at }) => at));
    for (const [failures, delayMs] of [200, 400, 800].entries()) {
      expect(waits[failures]).toBeGreaterThanOrEqual(delayMs);
    }
  });

  it('waits as long as the policy says after each failure, and no longer', async () => {
    await heraut.setRetryPolicy({ maxRetries: 5, backoffFactor: 600, baseFactor: 2 });
    receiver.always(answer(500));
    let before = Date.now();
    const { id } = await heraut.publish(channel);
    for (const [failures, delayMs] of [600_000, 1_200_000, 2_400_000].entries()) {
      const waiting = await eventually(async () => {
        const delivery = await heraut.delivery(id, subscription);
        return delivery.state === 'waiting' && delivery.attemptCount === failures + 1 && delivery;
      }, 'the next wait');
      expectBetween(waiting.nextAttemptAt, before + delayMs, Date.now() + delayMs);
      before = Date.now();
      await heraut.command('retry', id, subscription); // does not count as a failure, and spares the wait
    }
  });

  it.each<[string, () => string, number]>([
    ['seconds', () => '2', 2000],
    ['a date', () => new Date(Date.now() + 2000).toUTCString(), 1000], // which has whole seconds only
  ])('is not repeated earlier than its receiver asks in %s', async (_, retryAfter, leastMs) => {
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 0.05 });
    const asked: Behaviour = (_request, response) => response.writeHead(429, { 'retry-after': retryAfter() }).end();
    receiver.next(asked);
    const { id } = await heraut.publish(channel);
    await heraut.becomes('delivered', id, subscription);
    const [waitedMs] = waitsBetween(receiver.notifications.map(({ at }) => at));
    // Each clock is rounded by itself, and the one of Postgres is another.
    expect(waitedMs).toBeGreaterThanOrEqual(leastMs - 50);
  });

  it('shows where it stands while it waits and while it is repeated', async () => {
    await heraut.setRetryPolicy(forLong);
    let finish = () => {};
    receiver.next(answer(502), (_request, response) => (finish = () => response.writeHead(204).end()));
    const before = Date.now();
    const { id } = await heraut.publish(channel);
    const waiting = await heraut.becomes('waiting', id, subscription);
    const live = await liveIs('waiting', id);
    expect(live).toMatchObject({ attempt: 1, lastStatus: 502 });
    const delayMs = forLong.backoffFactor * 1000;
    for (const { nextAttemptAt } of [waiting, live])
      expectBetween(nextAttemptAt, before + delayMs, Date.now() + delayMs);

    await heraut.command('retry', id, subscription);
    expect(await liveIs('sending', id)).toMatchObject({ attempt: 2, nextAttemptAt: null });
    await eventually(() => receiver.notifications.length === 2, 'the second call');
    finish();
    await heraut.becomes('delivered', id, subscription);
    await eventually(async () => (await heraut.delivery(id, subscription)).live === null, 'the live state to be over');
  });

  it('is a dead letter when its attempts are used up, and delivered when an operator has it sent again', async () => {
    await heraut.setRetryPolicy({ maxRetries: 2, backoffFactor: 0.05 });
    receiver.always(answer(500));
    const { id } = await heraut.publish(channel);
    const failed = await heraut.becomes('failed', id, subscription);
    expect(failed).toMatchObject({ attemptCount: 3, lastStatus: 500, nextAttemptAt: null });
    expect(receiver.notifications).toHaveLength(3);
    const { body } = await heraut.api.call('GET', `/admin/v1/deliveries?state=failed&subscription=${subscription}`);
    expect(body).toMatchObject({ deliveries: [{ notificationId: id, subscriptionId: subscription }] });

    receiver.always(answer(204));
    await heraut.command('retry', id, subscription);
    expect(await heraut.becomes('delivered', id, subscription)).toMatchObject({ attemptCount: 4 });
    expect(receiver.notifications.map(({ headers }) => headers['webhook-id'])).toEqual([id, id, id, id]);
  });

  it('is given a new series of attempts when a dead letter is sent again', async () => {
    await heraut.setRetryPolicy({ maxRetries: 1, backoffFactor: 0.05 });
    receiver.always(answer(500));
    const { id } = await heraut.publish(channel);
    await heraut.becomes('failed', id, subscription);
    await heraut.command('retry', id, subscription);
    await eventually(() => receiver.notifications.length === 4, 'two attempts more');
    await heraut.becomes('failed', id, subscription);
    expect(receiver.notifications.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2', '3', '4']);
  });

  it('is not repeated any more when it was cancelled while it waited', async () => {
    // Long enough to be cancelled meanwhile, also on a busy machine.
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 6 });
    receiver.next(answer(500));
    const [{ id: cancelled }, { id: other }] = [await heraut.publish(channel), await heraut.publish(channel)];
    const failedOne = await eventually(async () => {
      if ((await heraut.delivery(cancelled, subscription)).state === 'waiting') return cancelled;
      if ((await heraut.delivery(other, subscription)).state === 'waiting') return other;
      return undefined;
    }, 'one of them to wait');
    await heraut.command('cancel', failedOne, subscription);
    // The call of the other one must not get the next answer.
    await heraut.becomes('delivered', failedOne === cancelled ? other : cancelled, subscription);
    // One that fails later and is repeated shows that the time of the cancelled one is over.
    receiver.next(answer(500));
    const { id: later } = await heraut.publish(channel);
    expect((await heraut.becomes('delivered', later, subscription)).attemptCount).toBe(2);
    expect(await heraut.delivery(failedOne, subscription)).toMatchObject({ state: 'cancelled', attemptCount: 1 });
    expect(callsFor(failedOne)).toBe(1);
  });

  it('follows a changed policy from its next failure on', async () => {
    await heraut.setRetryPolicy(forLong);
    receiver.always(answer(500));
    const { id } = await heraut.publish(channel);
    await heraut.becomes('waiting', id, subscription);
    await heraut.setRetryPolicy({ maxRetries: 2, backoffFactor: 0.05 });
    await heraut.command('retry', id, subscription);
    const { attempts } = await heraut.becomes('failed', id, subscription);
    expect(attempts).toHaveLength(3);
  });

  it('follows the policy of its subscription before the general one', async () => {
    await heraut.setRetryPolicy(forLong);
    const path = `/admin/v1/subscriptions/${subscription}/retry-policy`;
    expect((await heraut.api.call('PUT', path, { body: { maxRetries: 1, backoffFactor: 0.05 } })).status).toBe(200);
    receiver.always(answer(500));
    const { id } = await heraut.publish(channel);
    expect(await heraut.becomes('failed', id, subscription)).toMatchObject({ attemptCount: 2 });
  });

  it.each([415, 410])('is a dead letter at once when the receiver says %i', async (status) => {
    await heraut.setRetryPolicy(forLong);
    receiver.next(answer(status, {}, 'gone fishing'));
    const { id } = await heraut.publish(channel);
    expect(await heraut.becomes('failed', id, subscription)).toMatchObject({ attemptCount: 1, lastStatus: status });
  });

  it('ends with its subscription', async () => {
    await heraut.setRetryPolicy(forLong);
    const unsubscribed = await heraut.subscribe({ channel, url: `${receiver.url}/unsubscribed` });
    receiver.always((request, response) => response.writeHead(request.path.endsWith('unsubscribed') ? 500 : 204).end());
    const { id } = await heraut.publish(channel);
    await heraut.becomes('waiting', id, unsubscribed);
    await heraut.unsubscribe(unsubscribed);
    await heraut.becomes('cancelled', id, unsubscribed);
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 0.5 });
    receiver.next(answer(500));
    const { id: later } = await heraut.publish(channel);
    expect((await heraut.becomes('delivered', later, subscription)).attemptCount).toBe(2);
    expect(receiver.notifications.filter(({ path }) => path.endsWith('unsubscribed'))).toHaveLength(1);
  });

  function liveIs(status: string, id: string): Promise<NonNullable<DeliveryBody['live']>> {
    return eventually(async () => {
      const { live } = await heraut.delivery(id, subscription);
      return live?.status === status && live;
    }, `the live state to be ${status}`);
  }

  const callsFor = (id: string) => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id).length;
});

/** However long the machine took in between. */
function expectBetween(moment: string, earliest: number, latest: number): void {
  expect(Date.parse(moment)).toBeGreaterThanOrEqual(earliest);
  expect(Date.parse(moment)).toBeLessThanOrEqual(latest);
}

function waitsBetween(times: number[]): number[] {
  return times.slice(1).map((at, index) => at - times[index]!);
}
