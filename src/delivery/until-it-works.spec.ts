import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import * as realEvents from 'node:events';
import { setTimeout as realPause } from 'node:timers/promises';

/** Pauses are written down, and over at once unless the test makes them long. */
const pauses: number[] = [];
let isPauseLong = false;
jest.unstable_mockModule('node:timers/promises', () => ({
  setTimeout: (ms: number, value: unknown, options: { signal: AbortSignal }) => {
    pauses.push(ms);
    return realPause(isPauseLong ? 60_000 : 0, value, options);
  },
}));
const setMaxListeners = jest.fn();
jest.unstable_mockModule('node:events', () => ({ ...realEvents, setMaxListeners }));
const { untilItWorks } = await import('./until-it-works.js');

const dataError = Object.assign(new Error('invalid byte sequence'), { code: '22021' });

describe('our own trouble', () => {
  let stopping: AbortController;

  beforeEach(() => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    stopping = new AbortController();
    pauses.length = 0;
    isPauseLong = false;
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Work that fails that often before it works. */
  function failing(times: number, error = new Error('down')) {
    return jest.fn(() => (times-- > 0 ? Promise.reject(error) : Promise.resolve('done')));
  }

  it('costs nothing when there is none', async () => {
    const work = failing(0);
    expect(await untilItWorks(work, stopping.signal)).toBe('done');
    expect(work).toHaveBeenCalledTimes(1);
    expect(pauses).toEqual([]);
  });

  it('is waited out, with pauses that double up to two seconds', async () => {
    const work = failing(9);
    expect(await untilItWorks(work, stopping.signal)).toBe('done');
    expect(work).toHaveBeenCalledTimes(10);
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
  });

  it('is not waited out when the data are to blame', async () => {
    const work = failing(5, dataError);
    await expect(untilItWorks(work, stopping.signal)).rejects.toBe(dataError);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it('is given up when the process stops, without waiting for the end of a pause', async () => {
    isPauseLong = true;
    const work = failing(Infinity);
    const result = untilItWorks(work, stopping.signal);
    await realPause(1);
    stopping.abort();
    expect(await result).toBeUndefined();
    expect(work).toHaveBeenCalledTimes(1);
  });

  it('may befall everything a worker has in hand without being taken for a leak', async () => {
    isPauseLong = true;
    const result = untilItWorks(failing(Infinity), stopping.signal);
    await realPause(1);
    expect(setMaxListeners).toHaveBeenCalledWith(0, stopping.signal); // Node warns beyond that many; 0 is any number
    stopping.abort();
    await result;
  });

  it('is not even met when the process is stopping already', async () => {
    const work = failing(0);
    stopping.abort();
    expect(await untilItWorks(work, stopping.signal)).toBeUndefined();
    expect(work).not.toHaveBeenCalled();
  });
});
