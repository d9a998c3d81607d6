import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { withoutBrackets } from '../outbound/host.js';
import { Outbound } from '../outbound/outbound.service.js';
import type { Refused } from '../outbound/refused.js';
import { SubscriptionsService } from './subscriptions.service.js';

/** Where subscriptions lead: scheme, host and port. */
interface Callback {
  url: URL;
  subscriptions: number;
}

/** Callbacks that the warning names; it counts them all. */
const mostNamed = 10;

/**
 * Warns, once after the start, of the subscriptions that the settings refuse: an installation whose receivers are on
 * private networks needs CALLBACK_ALLOWED_NETWORKS. Nothing waits for it. Part of the role `dispatcher`, which mostly
 * one process of an installation has.
 */
@Injectable()
export class RefusedCallbacks implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Callback');
  private readonly stopping = new AbortController();
  /**
   * While a name is looked up, it takes one of the few threads of this process that do so
   * (src/supervision/process-plan.ts).
   */
  protected readonly bounds = { names: 1000, atOnce: 2, withinMs: 30_000 };

  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly outbound: Outbound,
  ) {}

  onApplicationBootstrap(): void {
    this.warn().catch((error: unknown) => {
      if (!this.stopping.signal.aborted) this.logger.warn({ event: 'callbacks.not-examined', error });
    });
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }

  async warn(): Promise<void> {
    const { names, atOnce, withinMs } = this.bounds;
    const callbacks = await this.callbacks();
    const left = [...callbacks.filter(hasAddress), ...callbacks.filter((one) => !hasAddress(one)).slice(0, names)];
    const unexamined = new Set(callbacks);
    const refusals = new Map<Callback, Refused>();
    const examine = async () => {
      for (let next = left.shift(); next; next = left.shift()) {
        const refusal = await this.outbound.refusalOf(next.url);
        unexamined.delete(next);
        if (refusal) refusals.set(next, refusal);
      }
    };
    const late = sleep(withinMs, undefined, { ref: false, signal: this.stopping.signal });
    await Promise.race([Promise.all(Array.from({ length: atOnce }, examine)), late]);
    left.length = 0;
    if (refusals.size === 0) return;
    const refused = [...refusals.keys()];
    this.logger.warn({
      event: 'callbacks.refused',
      subscriptions: count(refused),
      of: count(callbacks),
      unexamined: count([...unexamined]),
      callbacks: refused.slice(0, mostNamed).map(({ url }) => url.origin),
      settings: [...new Set([...refusals.values()].map(({ setting }) => setting))],
    });
  }

  private async callbacks(): Promise<Callback[]> {
    const byOrigin = new Map<string, Callback>();
    for (const { callbackUrl, disabledAt } of await this.subscriptions.list()) {
      if (disabledAt || !URL.canParse(callbackUrl)) continue;
      const url = new URL(callbackUrl);
      const known = byOrigin.get(url.origin);
      if (known) known.subscriptions++;
      else byOrigin.set(url.origin, { url, subscriptions: 1 });
    }
    return [...byOrigin.values()];
  }
}

const hasAddress = ({ url }: Callback): boolean => isIP(withoutBrackets(url.hostname)) !== 0;

const count = (callbacks: readonly Callback[]): number =>
  callbacks.reduce((total, { subscriptions }) => total + subscriptions, 0);
