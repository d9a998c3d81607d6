import { beforeEach, describe, expect, it } from 'vitest';
import { RepeatedFailures } from './repeated-failures.js';

describe('something that is tried again and again, and fails', () => {
  let now: number;
  let logged: Record<string, unknown>[];
  let debugged: Record<string, unknown>[];
  let task: RepeatedFailures;

  beforeEach(() => {
    now = 1000;
    [logged, debugged] = [[], []];
    const log = (entry: Record<string, unknown>) => void logged.push(entry);
    const debug = (entry: Record<string, unknown>) => void debugged.push(entry);
    const lines = { failed: { event: 'failed', task: 'x' }, worksAgain: { event: 'works-again', task: 'x' } };
    task = new RepeatedFailures({ debug, log, warn: log }, lines, () => now);
  });

  const fail = (times: number) => {
    for (let nr = 0; nr < times; nr++) {
      task.failed(new Error('the database is down'));
      now += 1000;
    }
  };

  it('is reported once, and once more when it works again', () => {
    fail(59);
    expect(logged).toEqual([{ event: 'failed', task: 'x', failures: 1, error: new Error('the database is down') }]);
    task.worked();
    task.worked();
    expect(logged.slice(1)).toEqual([{ event: 'works-again', task: 'x', failures: 59 }]);
  });

  it('is mentioned once a minute while that lasts', () => {
    fail(150);
    expect(logged.map(({ failures }) => failures)).toEqual([1, 61, 121]);
  });

  it('is reported anew when it fails after it had worked', () => {
    fail(1);
    task.worked();
    fail(1);
    expect(logged.map(({ event }) => event)).toEqual(['failed', 'works-again', 'failed']);
  });

  it('has each failure at level debug that is not reported', () => {
    fail(150);
    expect(debugged).toHaveLength(147);
    expect(debugged[0]).toMatchObject({ event: 'failed', failures: 2 });
  });

  it('is noted by what becomes of each try', async () => {
    for (let nr = 0; nr < 10; nr++) await task.note(Promise.reject(new Error('down')));
    await task.note(Promise.resolve());
    expect(logged.map(({ event, failures }) => [event, failures])).toEqual([
      ['failed', 1],
      ['works-again', 10],
    ]);
  });

  it('says nothing while it works', () => {
    task.worked();
    expect(logged).toEqual([]);
  });
});
