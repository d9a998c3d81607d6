import { randomFillSync } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';

const bytesOfId = 16;
/** Random bytes that are drawn together: each call of the system costs as much as an id. */
const poolBytes = 4096;

/**
 * Makes ids of notifications, UUIDv7. Those of one millisecond are in no order.
 * @param now milliseconds since 1970, by the ledger's clock: the id decides in which partition a notification is, so a
 *   process whose own clock is wrong must not make it by that one
 */
export function notificationIds(now: () => number): () => string {
  const pool = new Uint8Array(poolBytes);
  let used = poolBytes;
  return () => {
    if (used === poolBytes) {
      randomFillSync(pool);
      used = 0;
    }
    const random = pool.subarray(used, (used += bytesOfId));
    return uuidv7({ msecs: Math.floor(now()), random });
  };
}
