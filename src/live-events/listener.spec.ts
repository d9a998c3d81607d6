import { describe, expect, it, vi } from 'vitest';
import { PassThrough } from 'node:stream';
import { recordingBegan } from './event-table.js';
import { Listener } from './listener.js';

const at = new Date('2026-11-22T08:00:00Z');
const events = (...all: Record<string, unknown>[]) =>
  all.map((event, nr) => ({ row: { id: String(nr + 1), at, event: '' }, event }));
const one = { event: 'notification.accepted', channel: 'cases' };

/** The data of each event that was written, as far as it has been read. */
const read = (output: PassThrough): Record<string, unknown>[] =>
  [...String(output.read() ?? '').matchAll(/^data: (.*)$/gm)].map(
    ([, data]) => JSON.parse(data!) as Record<string, unknown>,
  );

describe('a listener', () => {
  it('gets what fits, each once, with its number', () => {
    const output = new PassThrough();
    const listener = new Listener(output, { channel: 'cases' }, 0n);
    const rows = events(one, { ...one, channel: 'other' }, { event: 'endpoint.opened', address: 'https://x.example' });
    listener.take(rows);
    listener.take(rows);
    expect(String(output.read())).toBe(
      'id: 1\nevent: notification.accepted\ndata: {"id":"1","at":"2026-11-22T08:00:00.000Z","event":"notification.accepted","channel":"cases"}\n\n',
    );
    expect(listener.position).toBe(3n);
  });

  it.each([
    [{ event: 'delivery.attempted' }, 1],
    [{ subscription: 's' }, 1],
    [{ state: 'failed' }, 1],
    [{ state: 'failed', channel: 'other' }, 0],
    [{}, 2],
  ])('that asks for %j gets %i of two events', (filter, count) => {
    const output = new PassThrough();
    const attempted = { event: 'delivery.attempted', channel: 'cases', subscriptionId: 's', state: 'failed' };
    new Listener(output, filter, 0n).take(events(one, attempted));
    expect(read(output)).toHaveLength(count);
  });

  it('is told how many it missed because it read too slowly, and goes on', () => {
    const output = new PassThrough({ highWaterMark: 10 });
    const listener = new Listener(output, {}, 0n);
    listener.take(events(...Array.from({ length: 1500 }, () => one)));
    const kinds = [];
    for (let some = read(output); some.length > 0; some = read(output)) kinds.push(...some);
    expect(kinds).toHaveLength(1002);
    expect(kinds.at(-1)).toEqual({ event: 'events.missed', count: 499, reason: 'slow-reader' });
    listener.take([{ row: { id: '1501', at, event: '' }, event: one }]);
    expect(read(output)).toMatchObject([{ id: '1501' }]);
  });

  it('is told where nothing was written', () => {
    const output = new PassThrough();
    new Listener(output, {}, 0n).take(events(one, { event: recordingBegan }, one));
    const missed = { event: 'events.missed', count: null, reason: 'not-recorded' };
    expect(read(output)).toEqual([expect.objectContaining(one), missed, expect.objectContaining(one)]);
  });

  it('that does not read to the end loses its connection soon after', () => {
    vi.useFakeTimers();
    const output = new PassThrough();
    new Listener(output, {}, 0n).end();
    vi.advanceTimersByTime(4999);
    expect([output.writableEnded, output.destroyed]).toEqual([true, false]);
    vi.advanceTimersByTime(1);
    expect(output.destroyed).toBe(true);
    vi.useRealTimers();
  });
});
