import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { REDIS } from '../infra/redis/redis.module.js';
import { addressKey } from './address-key.js';
import type { Application } from './application.js';
import { RefusalCounts } from './refusal-counts.js';
import { sharedBy } from './shared-refusals.redis.js';

/** Anything that has the address of a caller; looked at only when it is needed. */
export interface Caller {
  readonly ip: string;
}

/**
 * Limits requests that are refused for their credentials, by address and by application. A request that is not refused
 * is never asked about, so that neither somebody who shares an address with a faulty client, a proxy's for example, nor
 * an application whose client id somebody else misuses, is kept out (docs/decisions/0036).
 */
@Injectable()
export class RefusalLimit {
  private readonly counts: RefusalCounts;

  constructor({ settings }: Config, clock: Clock, @Inject(REDIS) redis: Redis | null) {
    this.counts = new RefusalCounts(
      settings.REFUSALS_PER_MINUTE,
      () => clock.now(),
      redis ? sharedBy(redis) : undefined,
    );
  }

  /**
   * Counts a refusal.
   * @param application that the token names
   * @param isGuess whether the token has another signature than the application's
   * @returns the seconds to wait where there have been too many
   */
  add({ ip }: Caller, application: Application | undefined, isGuess: boolean): number | undefined {
    const address = addressKey(ip);
    const keys = [addressKeyOf(ip)];
    if (application) keys.push(`application ${application.id}`);
    let isUsedUp = this.counts.add(keys);
    // By itself: a caller that is told to wait already must not have its guesses checked for ever.
    if (application && isGuess) isUsedUp = this.counts.add([guessKey(address, application)]) || isUsedUp;
    return isUsedUp ? this.counts.secondsLeft : undefined;
  }

  /**
   * Counts a ticket that was looked up in vain. By themselves: tickets are the way in while the provider is away, and a
   * faulty client on the same machine, or behind the same proxy, does not shut it.
   */
  addTicket({ ip }: Caller): void {
    this.counts.add([ticketKeyOf(ip)]);
  }

  /** The seconds to wait where so many tickets of this address were looked up in vain that the next one is not. */
  waitWithTicket({ ip }: Caller): number | undefined {
    return this.waitOf(() => ticketKeyOf(ip));
  }

  /**
   * Counts a cookie of no session. By themselves: a user whose session this process has not seen yet is not kept out by
   * a faulty client behind the same address.
   * @returns the seconds to wait where there have been too many
   */
  addCookie({ ip }: Caller): number | undefined {
    return this.counts.add([cookieKeyOf(ip)]) ? this.counts.secondsLeft : undefined;
  }

  /** The seconds to wait where this address has sent so many cookies of no session that the next is not looked up. */
  waitWithCookie({ ip }: Caller): number | undefined {
    return this.waitOf(() => cookieKeyOf(ip));
  }

  /**
   * Counts a sign-in that failed at the provider. By themselves: a faulty client behind the same address keeps no user
   * out.
   */
  addSignIn({ ip }: Caller): void {
    this.counts.add([signInKeyOf(ip)]);
  }

  /** The seconds to wait where so many sign-ins of this address failed that the next is not taken to the provider. */
  waitToSignIn({ ip }: Caller): number | undefined {
    return this.waitOf(() => signInKeyOf(ip));
  }

  /**
   * The seconds to wait where this address has sent too many tokens of the application with wrong signatures: the next
   * is not even checked, or a secret that is short could be found by trying.
   */
  waitAsGuesser(caller: Caller, application: Application): number | undefined {
    return this.waitOf(() => guessKey(addressKey(caller.ip), application));
  }

  /** @param key made only where somebody was refused: this is asked for each request */
  private waitOf(key: () => string): number | undefined {
    return !this.counts.isQuiet && this.counts.isUsedUp(key()) ? this.counts.secondsLeft : undefined;
  }
}

const addressKeyOf = (ip: string): string => `address ${addressKey(ip)}`;
const cookieKeyOf = (ip: string): string => `cookie ${addressKey(ip)}`;
const ticketKeyOf = (ip: string): string => `ticket ${addressKey(ip)}`;
const signInKeyOf = (ip: string): string => `sign-in ${addressKey(ip)}`;
const guessKey = (address: string, { id }: Application): string => `guess ${address} ${id}`;
