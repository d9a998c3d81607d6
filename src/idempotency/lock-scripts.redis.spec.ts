import { describe, expect, it } from 'vitest';
import { Redis } from 'ioredis';
import { startPrivateRedis } from '../../scripts/private-servers.mjs';
import { eventually } from '../../test/support/eventually.js';
import { tryLocking, withScripts } from './lock-scripts.redis.js';

describe('the trial of Redis', () => {
  it('succeeds where batches of locks would, and leaves no lock behind', async () => {
    const { redis: server, stop } = await startPrivateRedis();
    const redis = withScripts(new Redis(server.url));
    try {
      await tryLocking(redis, 'process');
      expect(await redis.keys('i9y:*')).toEqual([]);
    } finally {
      redis.disconnect();
      await stop();
    }
  });

  it('fails where a lock would be given to a second process, since the keys of the first are not where scripts look', async () => {
    const { redis: server, stop } = await startPrivateRedis();
    const redis = withScripts(new Redis(server.url, { keyPrefix: 'other:' }));
    try {
      // Also a second time: the first leaves nothing behind that would be in the way of a trial.
      for (const _ of [1, 2]) await expect(tryLocking(redis, 'process')).rejects.toThrow('does not keep locks');
      expect(await redis.keys('*i9y:*')).toEqual([]);
    } finally {
      redis.disconnect();
      await stop();
    }
  });

  it('fails with a cluster, even with one that has all slots on one server, as a batch of two locks would', async () => {
    const { redis: server, stop } = await startPrivateRedis({ isCluster: true });
    const redis = withScripts(new Redis(server.url));
    try {
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
      await eventually(async () => (await redis.cluster('INFO')).includes('cluster_state:ok'), 'the cluster to work');
      await expect(tryLocking(redis, 'process')).rejects.toThrow('CROSSSLOT');
    } finally {
      redis.disconnect();
      await stop();
    }
  });
});
