import type { Redis } from 'ioredis';

/*
 * Value under a key: `L<token> <hash>` locked, `S<hash> <outcome as JSON>` sealed; the hash may be empty. A holder is
 * alive as long as `w:<process>` exists. All scripts accept any number of keys: one round trip for all calls that
 * arrive together. The liveness key is read inside the script and is not among KEYS, so this needs a single Redis, not
 * a cluster.
 *
 * A key of another type than text would make the whole script fail, and with it all other calls of the batch; hence
 * pcall.
 */
const isOfAnotherType = `
local function isOfAnotherType(found)
  return type(found) == 'table' and found.err and string.find(found.err, 'WRONGTYPE', 1, true)
end`;

/** Answers: A acquired, T taken over, = and the present value, ? for a value that is no text. */
const acquireScript = `
${isOfAnotherType}
local answers = {}
for i, key in ipairs(KEYS) do
  local token, ttl, hash, takeover = ARGV[i * 4 - 3], ARGV[i * 4 - 2], ARGV[i * 4 - 1], ARGV[i * 4]
  local mine = 'L' .. token .. ' '
  local wanted = mine .. hash
  local found = redis.pcall('SET', key, wanted, 'PX', ttl, 'NX', 'GET')
  if isOfAnotherType(found) then
    answers[i] = '?'
  elseif type(found) == 'table' then
    return found
  elseif not found then
    answers[i] = 'A'
  elseif string.sub(found, 1, #mine) == mine then
    redis.call('SET', key, wanted, 'PX', ttl)
    answers[i] = 'A'
  elseif takeover == '1' and string.sub(found, 1, 1) == 'L' then
    local holder = string.match(found, '^L([^/ ]+)/')
    if holder and redis.call('EXISTS', 'w:' .. holder) == 0 then
      redis.call('SET', key, wanted, 'PX', ttl)
      answers[i] = 'T'
    else
      answers[i] = '=' .. found
    end
  else
    answers[i] = '=' .. found
  end
end
return answers`;

/**
 * Only the holder of the lock, by its token, may write the new value (seal), or nothing (release), or keep it (extend).
 */
const changeScript = `
${isOfAnotherType}
local answers = {}
for i, key in ipairs(KEYS) do
  local token, verb, ttl, outcome = ARGV[i * 4 - 3], ARGV[i * 4 - 2], ARGV[i * 4 - 1], ARGV[i * 4]
  local found = redis.pcall('GET', key)
  if type(found) == 'table' and not isOfAnotherType(found) then return found end
  local prefix = 'L' .. token .. ' '
  if type(found) == 'string' and string.sub(found, 1, #prefix) == prefix then
    if verb == 'seal' then
      redis.call('SET', key, 'S' .. string.sub(found, #prefix + 1) .. ' ' .. outcome, 'PX', ttl)
    elseif verb == 'extend' then
      redis.call('PEXPIRE', key, ttl)
    else
      redis.call('DEL', key)
    end
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers`;

export type WithScripts = Redis & {
  acquireKeys(count: number, ...keysAndArguments: (string | number)[]): Promise<string[]>;
  changeKeys(count: number, ...keysAndArguments: (string | number)[]): Promise<number[]>;
};

export function withScripts(redis: Redis): WithScripts {
  redis.defineCommand('acquireKeys', { lua: acquireScript });
  redis.defineCommand('changeKeys', { lua: changeScript });
  return redis as WithScripts;
}

const livenessTtlMs = 5000;
export const livenessOf = (process: string): string => `w:${process}`;

/**
 * Says that a process is alive, and locks, extends and releases keys of its own: Redis may store a text and still
 * refuse scripts, or what they call, to this user. One request finds a lock and asks for its holder, as one does that
 * may take a lock over. The keys are two, as in a batch: a cluster refuses them, even one whose slots are all on one
 * server (CROSSSLOT).
 * @throws what Redis refuses, and where it answers otherwise than to a lock that is held and one that is asked for in
 *   vain: every holder would count as dead, and its delivery be sent a second time
 */
export async function tryLocking(redis: WithScripts, process: string): Promise<void> {
  const [key, otherKey] = [`i9y:trial:${process}:1`, `i9y:trial:${process}:2`];
  const [first, second] = [`${process}/first`, `${process}/second`];
  const acquire = (token: string, mayTakeOver: '0' | '1') => [token, livenessTtlMs, '', mayTakeOver];
  const extend = [first, 'extend', livenessTtlMs, ''];
  const release = (token: string) => [token, 'release', 0, ''];
  // In this order on the connection, and none waits for an answer: a beat takes one round trip.
  const [, acquired, changed] = await Promise.all([
    redis.set(livenessOf(process), '1', 'PX', livenessTtlMs),
    redis.acquireKeys(3, key, otherKey, key, ...acquire(first, '0'), ...acquire(first, '0'), ...acquire(second, '1')),
    // Of the second one, so that the next trial finds no lock of its own kind where this one fails.
    redis.changeKeys(4, key, key, otherKey, key, ...extend, ...release(first), ...release(first), ...release(second)),
  ]);
  const answers = [...acquired, ...changed].join(', ');
  if (answers !== `A, A, =L${first} , 1, 1, 1, 0`) throw new Error(`Redis does not keep locks: it answers ${answers}`);
}
