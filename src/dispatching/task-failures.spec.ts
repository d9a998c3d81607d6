import { beforeEach, describe, expect, it } from 'vitest';
import { TaskFailures } from './task-failures.js';

describe('a task of the dispatcher that fails again and again', () => {
  let now: number;
  let logged: Record<string, unknown>[];
  let task: TaskFailures;

  beforeEach(() => {
    now = 1000;
    logged = [];
    const log = (entry: Record<string, unknown>) => void logged.push(entry);
    task = new TaskFailures('hand-out', { log, warn: log }, () => now);
  });

  const fail = (times: number) => {
    for (let nr = 0; nr < times; nr++) {
      task.failed(new Error('the database is down'));
      now += 1000;
    }
  };

  it('is reported once, and once more when it works again', () => {
    fail(59);
    expect(logged).toEqual([
      { event: 'dispatcher.task-failed', task: 'hand-out', failures: 1, error: new Error('the database is down') },
    ]);
    task.worked();
    task.worked();
    expect(logged.slice(1)).toEqual([{ event: 'dispatcher.task-works-again', task: 'hand-out', failures: 59 }]);
  });

  it('is mentioned once a minute while that lasts', () => {
    fail(150);
    expect(logged.map(({ failures }) => failures)).toEqual([1, 61, 121]);
  });

  it('is reported anew when it fails after it had worked', () => {
    fail(1);
    task.worked();
    fail(1);
    expect(logged.map(({ event }) => event)).toEqual([
      'dispatcher.task-failed',
      'dispatcher.task-works-again',
      'dispatcher.task-failed',
    ]);
  });

  it('says nothing while it works', () => {
    task.worked();
    expect(logged).toEqual([]);
  });
});
