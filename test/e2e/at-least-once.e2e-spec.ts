import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { lastPart } from '../support/last-part.js';
import { answer, arrival, Receiver } from '../support/receiver.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

describe.each(stacks)('a notification published on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;

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
  });

  afterEach(() => receiver.stop());

  it('arrives as it was echoed in the 201, byte for byte, under the id of its header', async () => {
    const channel = await heraut.createChannel(['object_type', 'place']);
    const auth = 'Token  0123 "quoted"; scheme=odd';
    const subscription = await heraut.subscribe({ channel, url: receiver.url, auth });
    const fields = {
      resource: 'Café ☕ \u2028 "<&>"',
      aanmaakdatum: '2025-01-01T13:00:00.123456+01:00',
      kenmerken: { place: 'Curaçao', object_type: '𝄞' },
      unknown: 'dropped',
    };
    const { id, text } = await heraut.publish(channel, fields);
    const [request] = await eventually(() => receiver.notifications.length > 0 && receiver.notifications, 'the call');
    expect(request?.text).toBe(text);
    expect(Object.keys(JSON.parse(text) as object)).toEqual([
      'kanaal',
      'hoofdObject',
      'resource',
      'resourceUrl',
      'actie',
      'aanmaakdatum',
      'kenmerken',
    ]);
    expect(request).toMatchObject({ method: 'POST', path: '/webhook' });
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      authorization: auth,
      'webhook-id': id,
      'webhook-attempt': '1',
      'user-agent': expect.stringMatching(/^Heraut\/\d+\.\d+\.\d+/),
    });
    await heraut.becomes('delivered', id, subscription);
    expect(receiver.notifications).toHaveLength(1);
  });

  it('arrives whole when it is too long to travel through the queue', async () => {
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: receiver.url });
    const kenmerken = Object.fromEntries(Array.from({ length: 500 }, (_, number) => [`k${number}`, 'é'.repeat(900)]));
    const { id, text } = await heraut.publish(channel, { kenmerken });
    expect(Buffer.byteLength(text)).toBeGreaterThan(900_000);
    await heraut.becomes('delivered', id, subscription);
    expect(receiver.notifications.map((request) => request.text)).toEqual([text]);
  });

  it('arrives once at each subscription whose filters it fits, and at no other', async () => {
    const channel = await heraut.createChannel(['colour', 'size']);
    const other = await heraut.createChannel();
    const filtersBySubscriber: Record<string, Record<string, string>[]> = {
      everything: [{}],
      red: [{ colour: 'red' }],
      blue: [{ colour: 'blue' }],
      'two-reasons': [{ colour: 'red' }, { size: 'large' }],
      'any-colour-and-large': [{ colour: '*', size: 'large' }],
      'red-and-small': [{ colour: 'red', size: 'small' }],
      Red: [{ colour: 'Red' }],
    };
    for (const [name, alternatives] of Object.entries(filtersBySubscriber)) {
      const kanalen = alternatives.map((filters) => ({ naam: channel, filters }));
      await heraut.subscribe({ channel, url: `${receiver.url}/${name}`, kanalen });
    }
    await heraut.subscribe({ channel: other, url: `${receiver.url}/other-channel` });
    const { id } = await heraut.publish(channel, { kenmerken: { colour: 'red', size: 'large' } });
    await eventuallyNothingUnfinished(id);
    expect(receiver.notifications.map(({ path }) => lastPart(path)).sort()).toEqual(
      ['any-colour-and-large', 'everything', 'red', 'two-reasons'].sort(),
    );
  });

  it('arrives at every one of many subscriptions', async () => {
    const channel = await heraut.createChannel();
    const numbers = Array.from({ length: 150 }, (_, number) => number);
    // One after the other: changes of the catalogue wait for each other, for two seconds at most.
    for (const number of numbers) await heraut.subscribe({ channel, url: `${receiver.url}/${number}` });
    const published = await heraut.publishMany(channel, 10);
    await eventually(() => new Set(receiver.arrivals).size >= 1500, 'every delivery');
    for (const { id } of published) await eventuallyNothingUnfinished(id);
    const expected = published.flatMap(({ id }) => numbers.map((number) => arrival(id, `/webhook/${number}`)));
    // A process that stands still for longer than a lease may send one twice: that is the promise.
    expect([...new Set(receiver.arrivals)].toSorted()).toEqual(expected.sort());
  });

  it('arrives although its receiver is not there at first', async () => {
    await heraut.setRetryPolicy({ maxRetries: 50, backoffFactor: 0.2 });
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: receiver.url });
    await receiver.stop();
    const { id } = await heraut.publish(channel);
    const waiting = await eventually(async () => {
      const delivery = await heraut.delivery(id, subscription);
      return delivery.attempts.length >= 2 && delivery;
    }, 'attempts at a port without a listener');
    expect(waiting.attempts[0]).toMatchObject({ status: null, error: expect.stringContaining('ECONNREFUSED') });
    await receiver.start();
    await heraut.becomes('delivered', id, subscription);
    expect(receiver.notifications).toHaveLength(1);
  });

  it('has arrived when the receiver answers any 2xx', async () => {
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: receiver.url });
    for (const status of [200, 202, 206, 226]) {
      receiver.next(answer(status, {}, 'thank you'));
      const { id } = await heraut.publish(channel);
      expect((await heraut.becomes('delivered', id, subscription)).lastStatus).toBe(status);
    }
  });

  async function eventuallyNothingUnfinished(notificationId: string): Promise<void> {
    await eventually(async () => {
      const { body } = await heraut.api.call('GET', `/admin/v1/deliveries?notification=${notificationId}&limit=500`);
      const { deliveries } = body as { deliveries: { state: string }[] };
      return deliveries.length > 0 && deliveries.every(({ state }) => state === 'delivered');
    }, 'every delivery to be delivered');
  }
});
