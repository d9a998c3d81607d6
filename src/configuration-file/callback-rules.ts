import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { LongWork } from '../infra/long-work.js';
import { Outbound } from '../outbound/outbound.service.js';
import type { ConfiguredSubscription } from './configuration-schema.js';
import type { Planning } from './planning.js';
import type { Entry } from './read-configuration.js';

/** Names that are looked up at once: the threads for that are few, and those of calls wait for the same ones. */
const atOnce = 4;

/**
 * Whether new and changed callbacks may be called: schemes, ports and addresses, as when an abonnement is made. The
 * callbacks are not called: a receiver that is down must not keep a file from being applied.
 */
@Injectable()
export class CallbackRules {
  /** A name that is not looked up in this time passes, as one that has no address now: each call checks its address. */
  protected readonly withinMs: number = 5000;

  constructor(private readonly outbound: Outbound) {}

  /** @param entries those with such a callback */
  async check(planning: Planning, entries: readonly Entry<ConfiguredSubscription>[]): Promise<void> {
    const left = [...entries];
    const given = new AbortController();
    const late = sleep(this.withinMs, undefined, { ref: false, signal: given.signal }).catch(() => {});
    const work = new LongWork();
    const examine = async () => {
      for (let next = left.shift(); next; next = left.shift()) {
        await work.yieldIfDue(); // an address needs no look-up
        const refused = await Promise.race([this.outbound.refusalOf(new URL(next.wanted.callbackUrl!)), late]);
        if (!refused) continue;
        planning.refuse(
          `${next.name}.callbackUrl`,
          'invalid-callback-url',
          `The callback is refused: ${refused.message}.`,
        );
      }
    };
    await Promise.all(Array.from({ length: atOnce }, examine));
    given.abort();
  }
}
