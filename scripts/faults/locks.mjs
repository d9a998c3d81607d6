import { Redis } from 'ioredis';

/**
 * A value that begins with L is a lock, one that begins with S a seal; all are counted in one step, at the same time.
 */
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
export const countLocked = async (redisUrl) => Number(await withRedis(redisUrl, (redis) => redis.eval(countScript, 0)));

/** The keys that hold a lock of one of the processes whose ids are given. */
const lockedByScript = `
local locked = {}
for _, key in ipairs(redis.call('KEYS', 'i9y:delivery:*')) do
  local value = redis.call('GET', key) or ''
  for _, holder in ipairs(ARGV) do
    if string.sub(value, 1, #holder + 2) == 'L' .. holder .. '/' then table.insert(locked, key) end
  end
end
return locked`;

/**
 * The deliveries that one of these processes has begun and not ended, as Redis knows it.
 * @param {string} redisUrl
 * @param {string[]} processIds
 * @returns {Promise<string[]>} their keys
 */
export const lockedBy = async (redisUrl, processIds) =>
  /** @type {string[]} */ (await withRedis(redisUrl, (redis) => redis.eval(lockedByScript, 0, ...processIds)));

/**
 * How many locks, seals and other keys Redis has.
 * @param {string} redisUrl
 * @returns {Promise<number>}
 */
export const countKeys = (redisUrl) => withRedis(redisUrl, (redis) => redis.dbsize());

/**
 * A connection of its own each time: a scenario may be about to break Redis.
 * @template T
 * @param {string} redisUrl
 * @param {(redis: Redis) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withRedis(redisUrl, work) {
  const redis = new Redis(redisUrl, { lazyConnect: true, maxRetriesPerRequest: 0 });
  redis.on('error', () => {}); // the command fails as well
  await redis.connect();
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
