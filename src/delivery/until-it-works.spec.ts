import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '../infra/clock.js';
import { Stopping, untilItWorks } from './until-it-works.js';

const dataError = Object.assign(new Error('invalid byte sequence'), { code: '22021' });

describe('our own trouble', () => {
  let stopping: AbortController;
  /** Pauses are written down, and over at once. */
  let pauses: number[];
  const clock: Clock = {
    now: () => 0,
    pause: (ms) => {
      pauses.push(ms);
      return Promise.resolve();
    },
  };

  beforeEach(() => {
    vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    stopping = new AbortController();
    pauses = [];
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** Work that fails that often before it works. */
  function failing(times: number, error = new Error('down')) {
    return vi.fn<() => Promise<string>>(() => (times-- > 0 ? Promise.reject(error) : Promise.resolve('done')));
  }

  it('costs nothing when there is none', async () => {
    const work = failing(0);
    expect(await untilItWorks(work, clock, stopping.signal)).toBe('done');
    expect(work).toHaveBeenCalledTimes(1);
    expect(pauses).toEqual([]);
  });

  it('is waited out, with pauses that double up to two seconds', async () => {
    const work = failing(9);
    expect(await untilItWorks(work, clock, stopping.signal)).toBe('done');
    expect(work).toHaveBeenCalledTimes(10);
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
  });

  it('is not waited out when the data are to blame', async () => {
    const work = failing(5, dataError);
    await expect(untilItWorks(work, clock, stopping.signal)).rejects.toBe(dataError);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it('is logged once a second for all that waits, with how often there was some since the line before', async () => {
    const warn = vi.spyOn(Logger.prototype, 'warn');
    let now = 0;
    const timed: Clock = {
      now: () => now,
      pause: (ms) => {
        now += ms;
        return Promise.resolve();
      },
    };
    const error = new Error('first');
    await untilItWorks(failing(1, error), timed, stopping.signal); // at 0
    await untilItWorks(failing(5), timed, stopping.signal); // at 50, 100, 200, 400, 800
    await untilItWorks(failing(2), timed, stopping.signal); // at 1600, 1650
    const event = 'delivery.postponed';
    expect(warn.mock.calls.map(([line]) => line as unknown)).toEqual([
      { event, postponed: 1, pauseMs: 50, error },
      { event, postponed: 6, pauseMs: 50, error: new Error('down') },
    ]);
  });

  it('is given up when the process stops, without waiting for the end of a pause', async () => {
    const work = failing(Infinity);
    const patient: Clock = { now: () => 0, pause: (_, signal) => systemClock.pause(3_600_000, signal) };
    const result = untilItWorks(work, patient, stopping.signal);
    await systemClock.pause(1);
    stopping.abort(new Stopping());
    await expect(result).rejects.toThrow(Stopping);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it('does not keep what is known from being written, once, while the process is stopping already', async () => {
    stopping.abort(new Stopping());
    expect(await untilItWorks(failing(0), clock, stopping.signal)).toBe('done');
    const work = failing(1);
    await expect(untilItWorks(work, clock, stopping.signal)).rejects.toThrow(Stopping);
    expect(work).toHaveBeenCalledTimes(1);
  });
});
