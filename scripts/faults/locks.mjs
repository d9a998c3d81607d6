import { Redis } from 'ioredis';

/** A value that begins with L is a lock, one that begins with S a seal; all are counted in one step, at the same time. */
const countScript = `
local locked = 0
for _, key in ipairs(redis.call('KEYS', 'i9y:delivery:*')) do
  if string.sub(redis.call('GET', key) or '', 1, 1) == 'L' then locked = locked + 1 end
end
return locked`;

/**
 * Deliveries that a worker has begun and not ended, as Redis knows it.
 * @param {string} redisUrl
 * @returns {Promise<number>}
 */
export async function countLocked(redisUrl) {
  const redis = new Redis(redisUrl, { lazyConnect: true, maxRetriesPerRequest: 0 });
  redis.on('error', () => {}); // the command fails as well
  await redis.connect();
  try {
    return Number(await redis.eval(countScript, 0));
  } finally {
    redis.disconnect();
  }
}
