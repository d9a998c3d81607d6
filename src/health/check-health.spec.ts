import { once } from 'node:events';
import { setImmediate as immediate } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import type { Role } from '../config/server-settings.js';
import { checkHealth, PartDown, type HealthCheck } from './check-health.js';

const ignore = () => {};
const everyRole: Role[] = ['api', 'worker', 'dispatcher'];

const up = (name: string, stops: Role[]): HealthCheck => ({ name, stops, check: () => Promise.resolve() });
const down = (name: string, stops: Role[], error: unknown = new PartDown('gone')): HealthCheck => ({
  name,
  stops,
  // A thrown value is not always an Error.
  check: () => Promise.resolve().then(() => Promise.reject(error as Error)),
});

describe('health', () => {
  it('is ready when every part is up', async () => {
    expect(await checkHealth([up('postgres', everyRole), up('redis', ['worker'])], everyRole, 1000, ignore)).toEqual({
      status: 'ready',
      parts: { postgres: { status: 'up' }, redis: { status: 'up' } },
      down: [],
    });
  });

  it('is degraded, and names the part, while a part is down without which one of the roles still works', async () => {
    const checks = [up('postgres', everyRole), down('rabbitmq', ['worker', 'dispatcher'])];
    expect(await checkHealth(checks, everyRole, 1000, ignore)).toEqual({
      status: 'degraded',
      parts: { postgres: { status: 'up' }, rabbitmq: { status: 'down', error: 'gone' } },
      down: ['rabbitmq'],
    });
  });

  it('is unavailable when the same part stops the only role of the process', async () => {
    const { status } = await checkHealth([down('rabbitmq', ['worker', 'dispatcher'])], ['worker'], 1000, ignore);
    expect(status).toBe('unavailable');
  });

  it('is unavailable when two parts together stop every role', async () => {
    const checks = [down('redis', ['worker']), down('dispatcher', ['dispatcher'])];
    expect((await checkHealth(checks, ['worker', 'dispatcher'], 1000, ignore)).status).toBe('unavailable');
  });

  it('is degraded by a part that stops only other processes', async () => {
    expect((await checkHealth([down('worker', ['worker'])], ['api'], 1000, ignore)).status).toBe('degraded');
  });

  it('counts a part that does not answer in time as down', async () => {
    const silent: HealthCheck = { name: 'postgres', stops: everyRole, check: () => new Promise(() => {}) };
    expect(await checkHealth([silent], everyRole, 20, ignore)).toMatchObject({
      status: 'unavailable',
      parts: { postgres: { status: 'down', error: 'no answer within 0.02 s' } },
    });
  });

  it('does not count as down a part whose answer came while this process stood still', async () => {
    const { port1: ours, port2: theirs } = new MessageChannel();
    const answers: HealthCheck = {
      name: 'redis',
      stops: [],
      check: async () => {
        const answer = once(ours, 'message');
        theirs.postMessage('here');
        await immediate();
        const since = performance.now();
        while (performance.now() - since < 200);
        await answer;
      },
    };
    const { status } = await checkHealth([answers], everyRole, 100, ignore);
    ours.close();
    expect(status).toBe('ready');
  });

  it.each([
    [
      Object.assign(new Error('connect ECONNREFUSED db.internal:5432'), { code: 'ECONNREFUSED' }),
      'failed with ECONNREFUSED',
    ],
    [new Error('password authentication failed for user "admin"'), 'failed, see the log'],
  ])('shows only the code of an error that is not ours, and reports the whole error', async (error, shown) => {
    const reported: [string, unknown][] = [];
    const { parts } = await checkHealth([down('postgres', everyRole, error)], everyRole, 1000, (...args) =>
      reported.push(args),
    );
    expect(parts['postgres']?.error).toBe(shown);
    expect(reported).toEqual([['postgres', error]]);
  });

  it('survives a part that throws something other than an Error', async () => {
    const { parts } = await checkHealth([down('postgres', everyRole, 'nonsense')], everyRole, 1000, ignore);
    expect(parts['postgres']).toEqual({ status: 'down', error: 'failed, see the log' });
  });
});
