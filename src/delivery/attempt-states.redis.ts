import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { DeliveryKey } from '../ledger/delivery.js';
import { AttemptStates, type AttemptState } from './attempt-states.js';

export class RedisAttemptStates extends AttemptStates {
  private readonly logger = new Logger('RedisAttemptStates');

  constructor(private readonly redis: Redis) {
    super();
  }

  put(key: DeliveryKey, state: AttemptState, keepMs: number): void {
    this.redis.set(nameOf(key), JSON.stringify(state), 'PX', Math.ceil(keepMs)).catch((error: unknown) => {
      this.report(error);
      this.remove(key); // a full Redis still deletes: no state is better than the one before
    });
  }

  remove(key: DeliveryKey): void {
    this.redis.del(nameOf(key)).catch(this.report);
  }

  async get(notificationId: string, subscriptionId: string): Promise<AttemptState | undefined> {
    const text = await this.redis.get(nameOf({ notificationId, subscriptionId }));
    return text === null ? undefined : (JSON.parse(text) as AttemptState);
  }

  private readonly report = (error: unknown): void => this.logger.debug({ event: 'attempt-state.not-kept', error });
}

function nameOf({ notificationId, subscriptionId }: DeliveryKey): string {
  return `attempt:${notificationId}:${subscriptionId}`;
}
