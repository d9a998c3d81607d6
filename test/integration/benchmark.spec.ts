import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startChild, type Child } from '../../scripts/bench/child.mjs';
import { notificationWriter } from '../../scripts/bench/notification.mjs';
import { slowestIn } from '../../scripts/bench/disk-watch.mjs';
import { isolationToJson, missedIsolation } from '../../scripts/bench/isolation-report.mjs';
import { thirdsOf, type Isolation } from '../../scripts/bench/isolation.mjs';
import type { Behaviour, OddReceiversHandlers } from '../../scripts/bench/odd-receivers.mjs';
import type { ReceiverHandlers } from '../../scripts/bench/receiver.mjs';
import { countLost, reckon } from '../../scripts/bench/reckoning.mjs';
import { growthOf } from '../../scripts/bench/soak.mjs';
import { eventually } from '../support/eventually.js';

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

  it('tells the longest write of the disk in each part of a time, one that reaches into the next in both', () => {
    const writes = [
      { startedMs: 1000, tookMs: 2 },
      { startedMs: 1050, tookMs: 300 },
      { startedMs: 1400, tookMs: 5 },
      { startedMs: 1600, tookMs: 900 },
    ];
    expect(slowestIn(writes, { fromMs: 1000, toMs: 1600, parts: 3 })).toEqual([300, 300, 5]);
    expect(slowestIn([], { fromMs: 0, toMs: 9, parts: 1 })).toEqual([0]);
  });

  it('takes the worst third of the time for the ratio, and says which goals are missed', () => {
    const row: Isolation = {
      kind: 'hanging',
      endpoints: 20,
      undisturbedP95Ms: 10,
      undisturbedThirdsP95Ms: [10, 8, 11],
      undisturbedThirdsDiskMs: [1, 1, 2],
      thirdsDiskMs: [25, 1, 1],
      besideP95Ms: 12,
      thirdsP95Ms: thirdsOf(Float64Array.from({ length: 30 }, (_, number) => (number < 10 ? 30 : 5))),
      lost: 0,
      calls: 64,
      repeated: 0,
      held: 8000,
      secondsUntilAllDelivered: 5,
      machineSeconds: 2,
    };
    expect(isolationToJson([row])).toEqual([
      expect.objectContaining({
        kind: 'hanging',
        worstThirdP95Ms: 30,
        ratio: 3,
        undisturbedThirdsP95Ms: [10, 8, 11],
        thirdsP95Ms: [30, 5, 5],
      }),
    ]);
    expect(missedIsolation([row], { embedded: false })).toEqual([
      '20 hanging: the worst third is 3.00 (goal: at most 1.5)',
      '20 hanging: 8000 deliveries took 5 s (goal: at most 4 s)',
    ]);
    const well = { ...row, thirdsP95Ms: [20, 5, 5], secondsUntilAllDelivered: 4 };
    expect(missedIsolation([well], { embedded: true })).toEqual([]);
    expect(missedIsolation([well], { embedded: false })).toHaveLength(1);
    // Nothing came at all.
    expect(missedIsolation([{ ...well, thirdsP95Ms: [Infinity, 5, 5] }], { embedded: true })).toHaveLength(1);
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
    return reckon({ name: 'test', published }, arrivals!);
  }
});

describe('the receivers in trouble', () => {
  let odd: Child<OddReceiversHandlers>;
  const endpoints = 2;

  beforeAll(async () => {
    odd = await startChild('odd-receivers.mjs');
  });

  afterAll(() => odd.stop());

  it.each<Behaviour>(['reset', 'fail', 'away'])(
    'count a call only when it was answered well: %s',
    async (behaviour) => {
      const urls = await open(behaviour);
      expect(await post(urls, 0)).not.toBe(204);
      await odd.call('behave', 'well');
      expect(await odd.call('progress', 1)).toMatchObject({ different: 0, calls: behaviour === 'away' ? 0 : 1 });
      expect(await post(urls, 0)).toBe(204);
      expect(await odd.call('progress', 1)).toMatchObject({ different: 1 });
      expect(countLost(published, (await odd.call('arrivals', 1))!)).toBe(1);
    },
  );

  it('let calls hang, and answer those that still do when they are well again', async () => {
    const urls = await open('hang');
    const answer = post(urls, 1);
    await eventually(async () => (await odd.call('progress', 1)).calls === 1);
    await odd.call('behave', 'well');
    expect(await answer).toBe(204);
    expect(await odd.call('progress', 1)).toMatchObject({ different: 1 });
  });

  it('count what was repeated apart where that may be', async () => {
    const urls = await open('well');
    for (const number of [0, 1, 1]) expect(await post(urls, number)).toBe(204);
    const arrivals = (await odd.call('arrivals', 1))!;
    expect(reckon({ name: 'test', published, mayRepeat: true }, arrivals)).toEqual([]);
    expect(reckon({ name: 'test', published }, arrivals)).toHaveLength(1);
  });

  it('take the notifications that are for them in turn', async () => {
    const [first, second] = await open('well');
    const before = await odd.call('strange', undefined);
    expect(await post([second!, first!], 0, 1)).toBe(204);
    expect(await odd.call('strange', undefined)).toBe(before + 1);
    expect(await odd.call('progress', 1)).toMatchObject({ different: 0 });
  });

  const published = { startedMs: 0, ids, acceptedMs: new Float64Array(), troubles: [] };

  async function open(behaviour: Behaviour): Promise<string[]> {
    const urls = await odd.call('open', { origins: endpoints });
    await odd.call('begin', { run: 1, notifications: ids.length, subscriptions: 1, turns: endpoints });
    await odd.call('behave', behaviour);
    return urls;
  }

  /** @returns the status; undefined when there was no answer */
  async function post(urls: string[], number: number, path = number % endpoints): Promise<number | undefined> {
    const body = new Uint8Array(notificationWriter('bench', 1, endpoints)(number, 0));
    const headers = { authorization: 'Bearer bench', 'webhook-id': ids[number]! };
    const url = `${urls[number % endpoints]}/${path}`;
    return fetch(url, { method: 'POST', body, headers }).then(
      (response) => response.status,
      () => undefined,
    );
  }
});
