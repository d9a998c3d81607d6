import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startChild, type Child } from '../../scripts/bench/child.mjs';
import { notificationWriter } from '../../scripts/bench/notification.mjs';
import type { ReceiverHandlers } from '../../scripts/bench/receiver.mjs';
import { reckon } from '../../scripts/bench/reckoning.mjs';
import { growthOf } from '../../scripts/bench/soak.mjs';

const ids = ['id-of-0', 'id-of-1'];
const subscriptions = 2;

describe('the benchmark', () => {
  let receiver: Child<ReceiverHandlers>;
  let url: string;
  let lastRun = 0;

  beforeAll(async () => {
    receiver = await startChild('receiver.mjs');
    url = await receiver.call('listen', undefined);
  });

  afterAll(() => receiver.stop());

  it('is content when every delivery came once', async () => {
    const run = await begin();
    await deliverAll(run);
    expect(await complaints(run)).toEqual([]);
  });

  it('fails over a delivery that did not come', async () => {
    const run = await begin();
    await deliver(run, 0, 0);
    await deliver(run, 0, 1);
    await deliver(run, 1, 1);
    expect(await complaints(run)).toEqual(['test: 1 deliveries are missing: id-of-1 for subscription 0']);
  });

  it('fails over a delivery that came twice, long after the others', async () => {
    const run = await begin();
    await deliverAll(run);
    await begin();
    await deliver(run, 1, 0);
    expect(await complaints(run)).toEqual([
      'test: 1 deliveries came more than once: id-of-1 for subscription 0 (2 times)',
    ]);
  });

  it('fails over a delivery under an id that its publisher was not told', async () => {
    const run = await begin();
    await deliverAll(run, 'another-id');
    expect((await complaints(run))[0]).toContain('4 deliveries came under another webhook-id');
  });

  it('fails over a notification that was not accepted, and over one that came although it was not', async () => {
    const run = await begin();
    await deliverAll(run);
    const found = await complaints(run, ['id-of-0', ''], ['503 Service Unavailable']);
    expect(found).toEqual([
      'test: 1 publications were not accepted: 503 Service Unavailable',
      'test: 2 deliveries came of what was not accepted: number 1 for subscription 0, number 1 for subscription 1',
    ]);
  });

  it('forgets what was reckoned, and counts what comes of it later', async () => {
    const run = await begin();
    await deliverAll(run);
    const before = await receiver.call('strange', undefined);
    await receiver.call('forget', run);
    expect(await receiver.call('arrivals', run)).toBeUndefined();
    await deliver(run, 0, 0);
    expect(await receiver.call('strange', undefined)).toBe(before + 1);
  });

  it('counts a call that belongs to no measurement', async () => {
    const before = await receiver.call('strange', undefined);
    await post('0', Buffer.from('{}'), { authorization: 'Bearer bench', 'webhook-id': 'stranger' });
    expect(await receiver.call('strange', undefined)).toBe(before + 1);
  });

  it('has a receiver that can be registered, and does not count the calls that prove it', async () => {
    const before = await receiver.call('strange', undefined);
    expect(await post('0', Buffer.from('{}'), {})).toBe(401);
    expect(await post('0', Buffer.from('{}'), { authorization: 'Bearer bench' })).toBe(204);
    expect(await receiver.call('strange', undefined)).toBe(before);
  });

  it('says whether memory was flat after the first five minutes', () => {
    const settling = [100, 150, 200, 240, 250];
    expect(growthOf([...settling, 300, 310, 300, 310])).toBeUndefined();
    expect(growthOf([...settling, 300, 310, 300, 310, 300])).toMatchObject({ isFlat: true });
    expect(growthOf([...settling, 300, 290, 280, 270, 260])).toMatchObject({ from: 300, to: 260, isFlat: true });
    expect(growthOf([...settling, 300, 305, 310, 315, 320])).toEqual({
      from: 300,
      to: 320,
      perHour: 300,
      isFlat: false,
    });
  });

  async function begin(): Promise<number> {
    lastRun += 1;
    await receiver.call('begin', { run: lastRun, notifications: ids.length, subscriptions });
    return lastRun;
  }

  async function deliverAll(run: number, id?: string): Promise<void> {
    for (const number of ids.keys()) {
      for (let subscription = 0; subscription < subscriptions; subscription++) {
        await deliver(run, number, subscription, id);
      }
    }
  }

  async function deliver(run: number, number: number, subscription: number, id = ids[number]!): Promise<void> {
    const body = notificationWriter('bench', run)(number, 0);
    expect(await post(String(subscription), body, { authorization: 'Bearer bench', 'webhook-id': id })).toBe(204);
  }

  async function post(path: string, body: Buffer, headers: Record<string, string>): Promise<number> {
    return (await fetch(`${url}/${path}`, { method: 'POST', body: new Uint8Array(body), headers })).status;
  }

  async function complaints(run: number, accepted = ids, troubles: string[] = []): Promise<string[]> {
    const arrivals = await receiver.call('arrivals', run);
    const published = { startedMs: 0, ids: accepted, acceptedMs: new Float64Array(), troubles };
    return reckon({ run, name: 'test', subscriptions, published }, arrivals!);
  }
});
