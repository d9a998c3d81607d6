import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation, type Published } from '../support/installation.js';
import { answer, arrival, hang, Receiver } from '../support/receiver.js';
import { real, stacks, type PreparedStack } from '../support/stacks.js';

// As short as can be while the calls are still open when the process is killed.
const leases = { TTL_LOCK_TIME_LIMIT_MS: '1000', NOTIFICATION_REQUESTS_TIMEOUT: '6', DELIVERY_LEASE_MS: '17001' };
const names = ['a', 'b', 'c'];

describe.each(stacks)('a notification that was answered 201 on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;

  beforeEach(async () => {
    [prepared, receiver] = [await stack.prepare(), await Receiver.start()];
    heraut = await Installation.startWith(prepared, ['api,worker,dispatcher'], leases);
  });

  afterEach(async () => {
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it('is delivered although the process was killed as soon as it had answered', async () => {
    const channel = await heraut.createChannel();
    for (const name of names) await heraut.subscribe({ channel, url: `${receiver.url}/${name}` });
    // When it is killed some are answered, some are being sent, and the rest is not sent yet.
    const toAnswer = 40;
    receiver.always((request, response) => {
      if (receiver.notifications.length <= toAnswer) answer(204)(request, response);
    });
    const published = await heraut.publishMany(channel, 60);
    await heraut.api.kill9();
    expect(new Set(receiver.arrivals).size).toBeLessThan(180);
    receiver.always(answer(204));
    await heraut.api.start();

    const expected = published.flatMap(({ id }) => names.map((name) => arrival(id, `/webhook/${name}`))).sort();
    await eventually(() => new Set(receiver.arrivals).size >= expected.length, 'every one at every subscription');
    expect([...new Set(receiver.arrivals)].sort()).toEqual(expected);
    const texts = new Map(published.map(({ id, text }) => [id, text]));
    for (const { headers, text } of receiver.notifications) expect(text).toBe(texts.get(String(headers['webhook-id'])));
  });
});

describe('a worker that is killed while its receivers hang', () => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let published: Published[];

  beforeEach(async () => {
    [prepared, receiver] = [await real.prepare(), await Receiver.start()];
    // No call ends before the worker is killed, and nothing is freed by the end of a lease.
    const unhurried = { ...leases, NOTIFICATION_REQUESTS_TIMEOUT: '60', DELIVERY_LEASE_MS: '71001' };
    heraut = await Installation.startWith(prepared, ['api,dispatcher', 'worker'], unhurried);
    const channel = await heraut.createChannel();
    for (const name of names) await heraut.subscribe({ channel, url: `${receiver.url}/${name}` });
    receiver.always(hang);
    published = await heraut.publishMany(channel, 5);
    await eventually(() => receiver.notifications.length === 15, 'every call to be open');
    await heraut.processes[1]!.kill9();
    receiver.always(answer(204));
  });

  afterEach(async () => {
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it.each<[string, () => Promise<unknown>]>([
    ['to its next start', () => heraut.processes[1]!.start('live')],
    ['to another worker', () => heraut.add('worker')],
  ])('leaves the deliveries it had in hand %s, which sends them under the same id', async (_, begin) => {
    await begin();
    await eventually(() => receiver.notifications.length === 30, 'every one a second time');
    const times = new Map<string, number>();
    for (const key of receiver.arrivals) times.set(key, (times.get(key) ?? 0) + 1);
    expect([...times.keys()].sort()).toEqual(
      published.flatMap(({ id }) => names.map((name) => arrival(id, `/webhook/${name}`))).sort(),
    );
    expect(new Set(times.values())).toEqual(new Set([2]));
    // The call that was cut off does not count as an attempt.
    expect(new Set(receiver.notifications.map(({ headers }) => headers['webhook-attempt']))).toEqual(new Set(['1']));
  });
});
