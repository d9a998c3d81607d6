import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { endpointsOf } from '../endpoints/origin.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';

/**
 * An endpoint is probed with the deliveries to it. Of one that no subscription leads to any more (it was deleted, moved
 * or disabled, or has got another TLS identity) the circuit breaker would stay open for ever.
 */
@Injectable()
export class UnusedEndpoints {
  constructor(
    private readonly openEndpoints: OpenEndpoints,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly catalogue: Catalogue,
  ) {}

  async close(): Promise<void> {
    await this.openEndpoints.refresh();
    if (!this.openEndpoints.isAnyOpen) return;
    await this.catalogue.refresh();
    await this.openEndpoints.closeUnused([...this.find()]);
  }

  private find(): ReadonlySet<string> {
    const unused = new Set(this.openEndpoints.list().map(({ address }) => address));
    for (const subscription of this.subscriptions.all()) {
      if (unused.size === 0) break;
      if (subscription.disabledAt) continue;
      for (const address of endpointsOf(subscription)) unused.delete(address);
    }
    return unused;
  }
}
