import { describe, expect, it } from 'vitest';
import { readSettings } from '../config/settings.js';
import { countProcesses, environmentOf, heapOptions, thisMachine } from './process-plan.js';

const gigabyte = 1024 ** 3;
const machine = { cores: 8, memoryBytes: 16 * gigabyte, isLimited: false };
const servers = { DATABASE_URL: 'postgres://heraut@db.example/heraut', AMQP_URL: 'amqp://rabbit.example' };
const count = (settings: Record<string, string>, on = machine) => countProcesses(readSettings(settings), settings, on);
const environment = (settings: Record<string, string>, number: number, of: number, isFirstStart = true) =>
  environmentOf(readSettings({ ...servers, ...settings }), settings, number, of, isFirstStart);

describe('how many processes', () => {
  it('is one, unless PROCESSES says more', () => {
    expect(count(servers)).toBe(1);
    expect(count({ ...servers, PROCESSES: '3' })).toBe(3);
  });

  it('is one for each core with auto', () => {
    expect(count({ ...servers, PROCESSES: 'auto' })).toBe(8);
    expect(count({ ...servers, PROCESSES: 'auto' }, { ...machine, cores: 1 })).toBe(1);
  });

  it('is less with auto where there is less memory than 512 MB for each, and 150 MB beside them', () => {
    expect(count({ ...servers, PROCESSES: 'auto' }, { ...machine, memoryBytes: 2 * gigabyte })).toBe(3);
    expect(count({ ...servers, PROCESSES: 'auto' }, { ...machine, memoryBytes: 2.15 * gigabyte })).toBe(4);
    expect(count({ ...servers, PROCESSES: 'auto' }, { ...machine, memoryBytes: gigabyte })).toBe(1);
    expect(count({ ...servers, PROCESSES: 'auto' }, { ...machine, memoryBytes: gigabyte / 4 })).toBe(1);
    expect(count({ ...servers, PROCESSES: '8' }, { ...machine, memoryBytes: gigabyte })).toBe(8);
  });

  it('is with auto no more than a usual Postgres has connections for, unless their number was set', () => {
    const large = { ...machine, cores: 128, memoryBytes: 1024 * gigabyte };
    expect(count({ ...servers, PROCESSES: 'auto' }, large)).toBe(13);
    expect(count({ ...servers, PROCESSES: 'auto', DATABASE_POOL_SIZE: '' }, large)).toBe(13);
    expect(count({ ...servers, PROCESSES: 'auto', DATABASE_POOL_SIZE: '5' }, large)).toBe(128);
    expect(count({ ...servers, PROCESSES: '64' }, large)).toBe(64);
  });

  it('is one on the embedded database, and where all others would have no role', () => {
    expect(count({ PROCESSES: 'auto' })).toBe(1);
    expect(count({ ...servers, PROCESSES: '4', ROLES: 'dispatcher' })).toBe(1);
  });

  it('is found on this machine', () => {
    const { cores, memoryBytes } = thisMachine();
    expect(cores).toBeGreaterThanOrEqual(1);
    expect(memoryBytes).toBeGreaterThan(gigabyte / 16);
    expect(Number.isFinite(memoryBytes)).toBe(true);
  });
});

describe('the heap of one of several processes', () => {
  const limited = { cores: 4, memoryBytes: 2 * gigabyte, isLimited: true };
  const options = (count: number, on: typeof limited, set: string, heapOfV8 = 4 * gigabyte) =>
    heapOptions(count, on, set, heapOfV8);

  it('has its share of a limit of a container, with room for the rest of the process', () => {
    expect(options(3, limited, '--min-semi-space-size=32')).toEqual(['--max-old-space-size=474']);
    expect(options(8, limited, '')).toEqual(['--max-old-space-size=384']);
  });

  it('is left to V8 without such a limit, where its share is more than V8 takes, and where its size was set', () => {
    expect(options(3, { ...limited, isLimited: false }, '')).toEqual([]);
    expect(options(3, limited, '', 400 * 1024 ** 2)).toEqual([]);
    for (const set of ['--max-old-space-size=700', '--max_old_space_size=700', '--max-heap-size=700'])
      expect(options(3, limited, `--heap-growing-percent=100 ${set}`)).toEqual([]);
  });
});

describe('the settings of one of several processes', () => {
  it('give each threads enough to wait for names, unless their number was set', () => {
    expect(environment({}, 1, 2).UV_THREADPOOL_SIZE).toBe('16');
    expect(environment({ UV_THREADPOOL_SIZE: '8' }, 1, 2).UV_THREADPOOL_SIZE).toBe('8');
  });

  it('give the role dispatcher to the first only', () => {
    expect([1, 2, 3].map((number) => environment({}, number, 3).ROLES)).toEqual([
      'api,worker,dispatcher',
      'api,worker',
      'api,worker',
    ]);
  });

  it('leave it to all where the queue is in the memory of each', () => {
    const { DATABASE_URL } = servers;
    const plan = (number: number) => environmentOf(readSettings({ DATABASE_URL }), {}, number, 2, true);
    expect([plan(1).ROLES, plan(2).ROLES]).toEqual(['api,worker,dispatcher', 'api,worker,dispatcher']);
  });

  it('name the configuration file to the first only, and not where it is started again', () => {
    const file = (number: number, isFirstStart: boolean) => {
      const CONFIG_FILE = '/etc/heraut.yaml';
      const merged = { ...servers, CONFIG_FILE, ...environment({ CONFIG_FILE }, number, 2, isFirstStart) };
      return readSettings(merged).CONFIG_FILE;
    };
    expect(file(1, true)).toBe('/etc/heraut.yaml');
    expect([file(2, true), file(1, false), file(2, false)]).toEqual([undefined, undefined, undefined]);
  });

  it('are accepted as settings, whatever roles there are', () => {
    for (const ROLES of ['api', 'worker', 'api,worker', 'worker,dispatcher', 'api,dispatcher']) {
      for (const number of [1, 2]) {
        const merged = { ...servers, ROLES, ...environment({ ROLES }, number, 2) };
        expect(readSettings(merged).ROLES.length).toBeGreaterThan(0);
      }
    }
  });

  it('divide the connections that a usual Postgres allows, but leave a size alone that was set', () => {
    const sizes = [2, 4, 5, 8, 13, 64].map((of) => environment({}, 1, of).DATABASE_POOL_SIZE);
    expect(sizes).toEqual(['10', '10', '8', '4', '2', '2']);
    expect(environment({ DATABASE_POOL_SIZE: '30' }, 1, 64).DATABASE_POOL_SIZE).toBe('30');
    expect(environment({ DATABASE_POOL_SIZE: '' }, 1, 64).DATABASE_POOL_SIZE).toBe('2');
  });

  it('keep to the connections of a usual Postgres with whatever number auto finds', () => {
    for (let cores = 1; cores <= 128; cores++) {
      const of = count({ ...servers, PROCESSES: 'auto' }, { ...machine, cores, memoryBytes: 1024 * gigabyte });
      const pool = Number(environment({}, 1, of).DATABASE_POOL_SIZE);
      expect(of * (2 * pool + 3)).toBeLessThanOrEqual(97);
    }
  });

  it('divide the calls that one endpoint may have', () => {
    expect(environment({}, 1, 4).MAX_IN_FLIGHT_PER_ENDPOINT).toBe('32');
    expect(environment({ MAX_IN_FLIGHT_PER_ENDPOINT: '3' }, 1, 4).MAX_IN_FLIGHT_PER_ENDPOINT).toBe('1');
  });
});
