import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { arrival, Receiver } from '../support/receiver.js';
import { real, type PreparedStack } from '../support/stacks.js';

describe('two api processes on one real stack', () => {
  const rounds = 1000;
  /** Rounds that go on at the same time: each changes the catalogue under the others' publications. */
  const together = 4;
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;

  beforeAll(async () => {
    [prepared, receiver] = [await real.prepare(), await Receiver.start()];
    heraut = await Installation.startWith(prepared, ['api', 'api', 'worker,dispatcher']);
  });

  afterAll(async () => {
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it('give a new subscription of one every notification published through the other: 1000 rounds, none missed', async () => {
    const [first, second] = heraut.processes;
    const channel = await heraut.createChannel(['round']);
    const expected: string[] = [];
    let next = 0;
    const player = async () => {
      for (let round = next++; round < rounds; round = next++) {
        // Either process is the one that has to learn of it from the other.
        const [one, other] = round % 2 === 0 ? [first, second] : [second, first];
        const kanalen = [{ naam: channel, filters: { round: String(round) } }];
        const subscription = await heraut.subscribe({ channel, url: `${receiver.url}/${round}`, kanalen }, one);
        const { id } = await heraut.publish(channel, { kenmerken: { round: String(round) } }, other);
        const key = arrival(id, `/webhook/${round}`);
        expected.push(key);
        // Deleted only then, because the waiting deliveries of a subscription end with it.
        await eventually(() => arrived().has(key), `round ${round}`, { everyMs: 2 });
        await heraut.unsubscribe(subscription, one);
      }
    };
    await Promise.all(Array.from({ length: together }, player));
    expect(expected).toHaveLength(rounds);
    expect(receiver.arrivals.toSorted()).toEqual(expected.sort());
  });

  it('send no notification to a subscription after its deletion through one of them was answered', async () => {
    const [first, second] = heraut.processes;
    const channel = await heraut.createChannel();
    const before = receiver.notifications.length;
    for (let round = 0; round < 20; round++) {
      const subscription = await heraut.subscribe({ channel, url: `${receiver.url}/deleted` }, first);
      await heraut.unsubscribe(subscription, first);
      const { id } = await heraut.publish(channel, {}, second);
      const { body } = await heraut.api.call('GET', `/admin/v1/deliveries?notification=${id}`);
      expect(body).toMatchObject({ deliveries: [] });
    }
    expect(receiver.notifications).toHaveLength(before);
  });

  const seen = new Set<string>();

  /** The keys that have arrived; reads only the new arrivals each time. */
  function arrived(): Set<string> {
    for (const each of receiver.arrivals.slice(seen.size)) seen.add(each);
    return seen;
  }
});
