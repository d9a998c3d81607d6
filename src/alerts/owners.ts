import type { Application } from '../auth/application.js';
import { endpointsOf } from '../endpoints/origin.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { Alert } from './alert.js';

const endpoint = 'endpoint/';

/** Where the owners of subscriptions want to be told of trouble with them. */
export class Owners {
  private byEndpoint: Map<string, Set<string>> | undefined;

  constructor(
    private readonly subscriptions: { find(id: string): Subscription | undefined; all(): Iterable<Subscription> },
    private readonly applications: { find(clientId: string): Application | undefined },
  ) {}

  /** Mail addresses of those whose subscriptions the alert concerns. */
  of(alert: Alert): string[] {
    if (alert.rule === 'endpoint-open') {
      this.byEndpoint ??= this.groupByEndpoint();
      return [...(this.byEndpoint.get(alert.subject.slice(endpoint.length)) ?? [])];
    }
    if (!('subscriptionId' in alert.details)) return [];
    const subscription = this.subscriptions.find(alert.details.subscriptionId);
    const address = subscription && this.addressOf(subscription);
    return address === undefined ? [] : [address];
  }

  /** That of the subscription goes before that of its application. */
  private addressOf({ alertEmail, ownerClientId }: Subscription): string | undefined {
    return alertEmail ?? this.applications.find(ownerClientId)?.alertEmail ?? undefined;
  }

  /** An endpoint is an origin or a callback URL, as it is called with one TLS identity. */
  private groupByEndpoint(): Map<string, Set<string>> {
    const groups = new Map<string, Set<string>>();
    for (const subscription of this.subscriptions.all()) {
      const address = this.addressOf(subscription);
      if (address === undefined) continue;
      for (const each of endpointsOf(subscription)) {
        const group = groups.get(each);
        if (group) group.add(address);
        else groups.set(each, new Set([address]));
      }
    }
    return groups;
  }
}
