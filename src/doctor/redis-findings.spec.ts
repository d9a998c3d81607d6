import { describe, expect, it } from 'vitest';
import { examineInfo } from './redis-findings.ioredis.js';

const well = {
  redis_version: '7.2.4',
  role: 'master',
  cluster_enabled: '0',
  loading: '0',
  used_memory: '1000000',
  maxmemory: '100000000',
  maxmemory_policy: 'noeviction',
};

const verdicts = (changed: Partial<typeof well>) =>
  examineInfo(new Map(Object.entries({ ...well, ...changed }))).map(({ name, verdict }) => `${name} ${verdict}`);

describe('Redis', () => {
  it('is well as Heraut needs it', () => {
    expect(verdicts({})).toEqual(['redis ok', 'redis-memory ok']);
  });

  it.each([
    [{ redis_version: '6.2.1' }, 'redis failed'],
    [{ role: 'slave' }, 'redis failed'],
    [{ cluster_enabled: '1' }, 'redis failed'],
    [{ loading: '1' }, 'redis warning'],
    [{ maxmemory_policy: 'allkeys-lru' }, 'redis-memory failed'],
    [{ maxmemory: '0' }, 'redis-memory warning'],
    [{ used_memory: '95000000' }, 'redis-memory warning'],
  ])('is told when INFO says %j', (changed, verdict) => {
    expect(verdicts(changed)).toContain(verdict);
  });
});
