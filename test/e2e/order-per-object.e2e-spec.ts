import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { answer, Receiver } from '../support/receiver.js';
import { real, type PreparedStack } from '../support/stacks.js';

describe('a subscription that keeps order by object', () => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let channel: string;
  let subscription: string;

  beforeAll(async () => {
    prepared = await real.prepare();
    heraut = await Installation.startWith(prepared, ['api', 'api', 'worker,dispatcher', 'worker,dispatcher']);
  });
  afterAll(async () => {
    await heraut.end();
    await prepared.release();
  });
  beforeEach(async () => {
    receiver = await Receiver.start();
    channel = await heraut.createChannel();
    subscription = await heraut.subscribe({ channel, url: receiver.url });
    const path = `/admin/v1/subscriptions/${subscription}`;
    expect((await heraut.api.call('PATCH', path, { body: { ordering: 'per-object' } })).status).toBe(200);
  });
  afterEach(async () => {
    await heraut.unsubscribe(subscription);
    await receiver.stop();
  });

  /** Through one api process, then the other. */
  async function publish(object: string, nr: number, others: Record<string, string> = {}): Promise<string> {
    const fields = { hoofdObject: `https://cases.example.org/api/cases/${object}`, ...others };
    return (await heraut.publish(channel, fields, heraut.processes[nr % 2])).id;
  }
  const arrived = (): string[] => receiver.notifications.map(({ headers }) => headers['webhook-id'] as string);
  const isFirst = (id: string, nr: number, ids: string[]): boolean => ids.indexOf(id) === nr;

  it('sends one that is dated a moment ahead before what was published about its object after it', async () => {
    // Anew where both were accepted so slowly that the first may not have had to wait for its date.
    const inTime = await eventually(async () => {
      const at = Date.now() + 450;
      const dated = await publish('a', 0, { aanmaakdatum: new Date(at).toISOString() });
      const later = await publish('a', 1);
      return Date.now() < at && [dated, later];
    }, 'both to be accepted before the date');
    await heraut.becomes('delivered', inTime[1]!, subscription);
    expect(arrived().filter((id) => inTime.includes(id))).toEqual(inTime);
  });

  it('sends a later one when the earlier one has been delivered, and one about another object at once', async () => {
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 600 });
    receiver.next(answer(503));
    const failing = await publish('a', 0);
    await heraut.becomes('waiting', failing, subscription);
    const later = [await publish('a', 1), await publish('a', 2)];
    const others = [await publish('b', 3), await publish('c', 4), await publish('b', 5)];
    for (const id of others) await heraut.becomes('delivered', id, subscription);
    for (const id of later) expect(await heraut.delivery(id, subscription)).toMatchObject({ state: 'held' });

    receiver.next(answer(500));
    await heraut.command('retry', failing, subscription);
    await eventually(() => arrived().filter((id) => id === failing).length === 2, 'the second attempt');
    await heraut.becomes('waiting', failing, subscription);
    for (const id of later) expect(await heraut.delivery(id, subscription)).toMatchObject({ state: 'held' });

    await heraut.command('retry', failing, subscription);
    for (const id of later) await heraut.becomes('delivered', id, subscription);
    const aboutA = new Set([failing, ...later]);
    expect(arrived().filter((id) => aboutA.has(id))).toEqual([failing, failing, failing, ...later]);
  });

  it('keeps the order when a worker is killed among them', async () => {
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 0.1 });
    const [objects, each] = [['a', 'b', 'c', 'd'], 15];
    receiver.always((_request, response) => void setTimeout(() => response.writeHead(204).end(), 20));
    const published = await Promise.all(
      objects.map(async (object) => {
        const ids: string[] = [];
        for (let nr = 0; nr < each; nr++) ids.push(await publish(object, nr));
        return ids;
      }),
    );
    await eventually(() => arrived().length > objects.length * 3, 'some of them');
    await heraut.processes[2]!.kill9();
    await heraut.add('worker,dispatcher');
    await eventually(() => new Set(arrived()).size === objects.length * each, 'all of them');
    for (const ids of published) {
      const ofObject = new Set(ids);
      // A delivery that was being sent when the worker was killed may come twice: at least once.
      const first = arrived()
        .filter((id) => ofObject.has(id))
        .filter(isFirst);
      expect(first).toEqual(ids);
    }
  });
});
