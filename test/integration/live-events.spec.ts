import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { systemClock } from '../../src/infra/clock.js';
import type { EventFilter } from '../../src/live-events/event-filter.js';
import { findAfter, sweepEvents, sweepLiveEvents, writeEvents } from '../../src/live-events/event-table.js';
import { statement, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import type { LiveEvent } from '../../src/live-events/live-event.js';
import { LiveEvents, mostTogether } from '../../src/live-events/live-events.service.js';
import { LiveListeners, mostListeners, type Place } from '../../src/live-events/live-listeners.service.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { DeadLetter } from '../../src/operational-events/operational-events.service.js';
import { eventually } from '../support/eventually.js';
import { TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

type Told = Record<string, unknown> & { id?: string; event: string };

/** One who listens, with what it was told so far. */
class Ear {
  readonly output = new PassThrough();
  private text = '';

  constructor() {
    this.output.on('data', (piece: Buffer) => (this.text += piece.toString()));
  }

  get told(): Told[] {
    return [...this.text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Told);
  }

  get ids(): number[] {
    return this.told.map(({ id }) => Number(id));
  }
}

const attempted = (notificationId: string, subscriptionId: string): LiveEvent => ({
  event: 'delivery.attempted',
  notificationId,
  subscriptionId,
  attempt: 1,
  durationMs: 5,
  status: 500,
  state: 'waiting',
  reason: 'HTTP 500',
});

describe.each(stacks)('live events on the $name stack', (stack) => {
  let test: TestLedger;
  let live: LiveEvents;
  let listeners: LiveListeners;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
    live = new LiveEvents(test.postgres, test.heartbeat, test.events);
    live.onApplicationBootstrap();
  });
  afterAll(() => test.close());
  beforeEach(() => {
    listeners = new LiveListeners(test.postgres, test.heartbeat);
  });
  afterEach(async () => {
    listeners.onModuleDestroy();
    test.heartbeat.isListenedTo = false;
    await test.sql(`UPDATE live_listener SET expires_at = '-infinity'`);
    await test.sql('DELETE FROM live_event');
  });

  async function hear(filter: EventFilter = {}, lastEventId?: bigint): Promise<Ear> {
    const ear = new Ear();
    await listeners.join(ear.output, filter, await listeners.prepare(randomUUID()), lastEventId);
    return ear;
  }
  const written = async () =>
    (await test.sql<{ count: number }>('SELECT count(*)::int AS count FROM live_event'))[0]!.count;

  it('are written only while somebody listens, and each process learns that by its heartbeat', async () => {
    const other = new Heartbeat(test.postgres, test.config, systemClock, new LedgerClock(test.postgres, systemClock));
    await other.onApplicationBootstrap();
    expect([live.isOn, other.isListenedTo]).toEqual([false, false]);
    test.events.report({ event: 'subscription.enabled', subscriptionId: 's' });
    await hear();
    await eventually(() => other.isListenedTo, 'the heartbeat to say so', { everyMs: 50 });
    expect(live.isOn).toBe(true);
    expect(await written()).toBe(1); // where the recording began
    await other.stop();
  });

  it('come from all processes, with the channel of each notification, to those whom they fit', async () => {
    const all = await hear();
    const some = await hear({ channel: 'another', state: 'waiting' });
    const [delivery] = await test.accept();
    const { notificationId, subscriptionId } = delivery!;
    const [{ channel }] = (await test.sql<{ channel: string }>('SELECT channel FROM notification WHERE id = $1', [
      notificationId,
    ])) as [{ channel: string }];
    const fitting = await hear({ channel, subscription: subscriptionId });
    const other = new LiveEvents(test.postgres, test.heartbeat, test.events);
    live.report(attempted(notificationId, subscriptionId));
    other.report({ event: 'endpoint.closed', address: 'https://x.example', openMs: 5, by: 'probe' });
    test.events.report({ event: 'subscription.paused', subscriptionId });
    await Promise.all([live.onApplicationShutdown(), other.onApplicationShutdown()]);
    await eventually(() => all.told.length === 3, 'all three');
    await eventually(() => fitting.told.length === 1, 'the one that fits');
    expect(fitting.told).toEqual([expect.objectContaining({ ...attempted(notificationId, subscriptionId), channel })]);
    expect(some.told).toEqual([]);
  });

  it('of dead letters that are told together are one for each channel, with what these have in common', async () => {
    const all = await hear();
    const letters: DeadLetter[] = [];
    const subscriptionId = randomUUID();
    for (const reason of ['one', 'two', 'three', 'four']) {
      const [{ notificationId }] = (await test.accept()) as [Delivery];
      letters.push({ notificationId, subscriptionId, state: 'failed', reason });
    }
    const [first, ...rest] = letters.map(({ notificationId }) => notificationId);
    await test.sql(`UPDATE notification SET channel = 'rare' WHERE id = $1`, [first]);
    await test.sql(`UPDATE notification SET channel = 'common' WHERE id = ANY ($1::uuid[])`, [rest]);
    const [rare, common] = [await hear({ channel: 'rare' }), await hear({ channel: 'common', event: 'delivery.dead' })];
    test.events.reportDead(letters);
    // Without a look at them: where nobody knows which they are, and beyond so many.
    const unknown = { notificationId: null, subscriptionId, state: 'failed', reason: null } as const;
    test.events.report({ event: 'delivery.dead', ...unknown, count: 7 });
    test.events.reportDead(Array.from({ length: mostTogether }, () => ({ ...letters[1]!, state: 'unknown' as const })));
    await live.onApplicationShutdown();
    await eventually(() => all.told.length === 4, 'all four');
    const text = expect.any(String) as string;
    const dead = { id: text, at: text, event: 'delivery.dead', subscriptionId, state: 'failed' };
    const ofRare = { ...dead, notificationId: first, reason: 'one', count: 1, channel: 'rare' };
    const ofCommon = { ...dead, notificationId: null, reason: 'two', count: 3, channel: 'common' };
    expect(all.told).toEqual([
      ofRare,
      ofCommon,
      { ...dead, notificationId: null, reason: null, count: 7 },
      { ...dead, notificationId: null, state: 'unknown', reason: 'two', count: mostTogether },
    ]);
    await eventually(() => rare.told.length + common.told.length === 2, 'those that fit');
    expect([rare.told, common.told]).toEqual([[ofRare], [ofCommon]]);
  });

  it('reach everybody who listens in the order of their numbers, each once, whenever they come and wherever they go on', async () => {
    const first = await hear();
    const ears: [Ear, number][] = [[first, 0]];
    const writer = async (nr: number) => {
      for (let round = 0; round < 15; round += 1)
        await writeEvents(test.postgres, [`{"event":"w","nr":${nr}}`, '{"event":"w"}']);
    };
    const writing = Promise.all([1, 2, 3].map(writer));
    for (let round = 0; round < 8; round += 1) {
      await eventually(() => first.told.length > round * 3, 'some more');
      const last = first.ids.at(Math.floor((first.ids.length * round) / 8))!;
      ears.push([await hear({}, BigInt(last)), last]);
    }
    await writing;
    await eventually(() => first.told.length === 90, 'all of them');
    const expected = first.ids;
    expect(expected).toEqual(expected.toSorted((one, other) => one - other));
    for (const [ear, last] of ears) {
      await eventually(() => ear.ids.at(-1) === expected.at(-1), 'the last one');
      expect(ear.ids).toEqual(expected.filter((each) => each > last));
    }
  });

  it('say so where some are missing: too many at once, too long ago, or not written', async () => {
    const ear = await hear();
    for (let nr = 0; nr < 1100; nr += 1) live.report({ event: 'subscription.enabled', subscriptionId: String(nr) });
    await eventually(() => ear.told.length === 1001, 'those that there was room for');
    expect(ear.told.at(-1)).toMatchObject({ event: 'events.missed', count: 100, reason: 'too-fast' });
    await test.sql(`UPDATE live_event SET at = now() - interval '6 minutes'`);
    const kept = await written();
    expect(await sweepLiveEvents(test.postgres, 0, kept - 1)).toBe(kept - 1);
    expect(await written()).toBe(1);
    expect(await sweepLiveEvents(test.postgres, 0, kept)).toBe(1);
    const late = await hear({}, BigInt(ear.ids[0]!));
    expect(late.told).toEqual([{ event: 'events.missed', count: null, reason: 'not-kept' }]);
    const upToDate = await hear({}, BigInt(ear.ids.at(-1)!));
    expect(upToDate.told).toEqual([]);
    await test.sql(`UPDATE live_listener SET expires_at = now() - interval '1 second'`);
    const after = await hear({}, BigInt(ear.ids.at(-1)!));
    expect(after.told).toEqual([{ event: 'events.missed', count: null, reason: 'not-recorded' }]);
  });

  it('reach those who listen at one look, however many there are since the last', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const ear = await hear();
      const texts = Array.from({ length: 2500 }, (_, nr) => JSON.stringify({ event: 'delivery.delivered', nr }));
      await writeEvents(test.postgres, texts);
      vi.advanceTimersToNextTimer();
      await eventually(() => ear.told.length === 2500, 'all of them');
      expect(ear.ids).toEqual([...ear.ids].sort((one, other) => one - other));
    } finally {
      vi.useRealTimers();
    }
  });

  it('that nobody wrote while this process was cut off from Postgres are told to be missing', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    try {
      const ear = await hear();
      await test.sql(`UPDATE live_listener SET expires_at = now() - interval '1 second'`);
      const told = (count: number) => {
        vi.advanceTimersByTime(1000); // every 15 s this process says again that somebody listens
        return ear.told.length === count;
      };
      await eventually(() => told(1), 'the gap');
      await writeEvents(test.postgres, ['{"event":"later"}']);
      await eventually(() => told(2), 'what came after');
      const missed = { event: 'events.missed', count: null, reason: 'not-recorded' };
      expect(ear.told).toMatchObject([missed, { event: 'later' }]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('that were swept before this process could read them are told to be missing', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const ear = await hear();
      await writeEvents(test.postgres, ['{"event":"one"}', '{"event":"two"}', '{"event":"three"}']);
      await test.sql(`DELETE FROM live_event WHERE event NOT LIKE '%three%'`);
      vi.advanceTimersToNextTimer();
      await eventually(() => ear.told.length === 2, 'what is left');
      expect(ear.told).toMatchObject([{ event: 'events.missed', count: null, reason: 'not-kept' }, { event: 'three' }]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('reach a listener, and all others, that goes on behind a number which was not given yet, and say that some are missing', async () => {
    const ahead = await hear({}, 10n ** 17n);
    const other = await hear();
    await writeEvents(test.postgres, ['{"event":"w"}']);
    await eventually(() => other.told.length === 1 && ahead.told.length === 2, 'the event, by both');
    expect(ahead.told).toEqual([{ event: 'events.missed', count: null, reason: 'not-kept' }, ...other.told]);
  });

  it('reach everybody after Postgres went back to lower numbers, with word that some are missing', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    try {
      const numbersFrom = (next: string) => test.sql(`SELECT setval('live_event_id', ${next}, false)`);
      await numbersFrom('5000000');
      const [first, second] = [await hear(), await hear()];
      await writeEvents(test.postgres, ['{"event":"before"}']);
      const told = (ear: Ear, count: number) => () => {
        vi.advanceTimersByTime(1000); // every 15 s this process looks whether the numbers still rise
        return ear.told.length === count;
      };
      await eventually(told(second, 1), 'the event before');
      await test.sql('DELETE FROM live_event');
      await numbersFrom('12');
      await writeEvents(test.postgres, ['{"event":"lost"}']);
      await eventually(told(second, 2), 'the gap');
      await writeEvents(test.postgres, ['{"event":"after"}']);
      await eventually(told(second, 3), 'an event after it');
      await eventually(told(first, 3), 'an event after it, by the other as well');
      const missed = { event: 'events.missed', count: null, reason: 'not-kept' };
      for (const ear of [first, second])
        expect(ear.told).toMatchObject([{ event: 'before' }, missed, { event: 'after' }]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('reach one who comes after Postgres went back to lower numbers, and those who listened before', async () => {
    vi.useFakeTimers({ toFake: ['performance'] }); // without it, those who listen find out by themselves in the end
    try {
      await test.sql(`SELECT setval('live_event_id', 5000000)`);
      const before = await hear();
      await test.sql('DELETE FROM live_event'); // it is not logged: a server that takes over has none
      await test.sql(`SELECT setval('live_event_id', 12)`);
      const after = await hear();
      await writeEvents(test.postgres, ['{"event":"after"}']);
      await eventually(() => after.told.length === 1 && before.told.length === 2, 'the event, by both');
      expect(before.told).toEqual([{ event: 'events.missed', count: null, reason: 'not-kept' }, ...after.told]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('are read and swept by an index each', async () => {
    const planOf = async ({ name, text }: Statement, values: Values) => {
      const rows = await test.postgres.query<Record<string, string>>(
        statement(`plan of ${name}`, `EXPLAIN ${text}`),
        values,
      );
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    };
    const after = await planOf(
      { ...findAfter, text: findAfter.text.replace('$1', '$after').replace('$2', '$most') },
      { after: '1', most: 10 },
    );
    expect(after).toMatch(/Index Scan using live_event_pkey[^]*Index Cond: \(id > /);
    const sweeping = { ...sweepEvents, text: sweepEvents.text.replace('$1', '$since_ms').replace('$2', '$limit') };
    expect(await planOf(sweeping, { since_ms: 0, limit: 10 })).toMatch(
      /Index Scan using live_event_at[^]*Index Cond: \(\(at >= .*\) AND \(at < /,
    );
  });

  it('have room for no more of those that come at once, and again for others when these leave or fail', async () => {
    const come = () => Promise.allSettled(Array.from({ length: 300 }, () => listeners.prepare(randomUUID())));
    const found = (settled: PromiseSettledResult<Place>[]) =>
      settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const first = found(await come());
    expect(first).toHaveLength(mostListeners);
    await expect(listeners.prepare(randomUUID())).rejects.toThrow(`${mostListeners} listen already.`);
    // Twice: only its own place is free then.
    for (const { leave } of [first[0]!, first[0]!]) leave();
    const [other, ...more] = found(await come());
    expect(more).toEqual([]);
    for (const { leave } of [...first, other!]) leave();
    const query = vi.spyOn(test.postgres, 'query').mockRejectedValue(new Error('away'));
    expect(found(await come())).toEqual([]);
    query.mockRestore();
    expect(found(await come())).toHaveLength(mostListeners);
  });

  it('have room for no more than half of one caller, and for everybody else', async () => {
    const settled = await Promise.allSettled(Array.from({ length: 100 }, () => listeners.prepare('a viewer')));
    const places = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(places).toHaveLength(mostListeners / 2);
    const refused = { status: 429, extra: { headers: { 'retry-after': '10' } } };
    await expect(listeners.prepare('a viewer')).rejects.toMatchObject(refused);
    (await listeners.prepare('another')).leave();
    places[0]!.leave();
    await listeners.prepare('a viewer');
    await expect(listeners.prepare('a viewer')).rejects.toMatchObject(refused);
  });

  it('end when the process stops, and have room for so many listeners', async () => {
    const ears = await Promise.all(Array.from({ length: mostListeners }, () => hear()));
    await expect(listeners.prepare(randomUUID())).rejects.toThrow(`${mostListeners} listen already.`);
    ears[0]!.output.destroy();
    await eventually(
      () =>
        listeners.prepare(randomUUID()).then(
          () => true,
          () => false,
        ),
      'room for another one',
    );
    listeners.onModuleDestroy();
    expect(ears.slice(1).every(({ output }) => output.writableEnded)).toBe(true);
    await expect(listeners.prepare(randomUUID())).rejects.toThrow('This process is stopping.');
  });
});
