import type { Application } from '../auth/application.js';
import { endpointsOf } from '../endpoints/origin.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { Alert } from './alert.js';

const endpoint = 'endpoint/';

/**
 * Mail addresses that are told of one alert, and those of one application that are told of anything. A subscriber may
 * name any number, also of strangers.
 */
export const mostAddresses = 100;

/** By the application whose subscriptions they are of. */
type Addresses = Map<string, Set<string>>;

/** Where the owners of subscriptions want to be told of trouble with them. */
export class Owners {
  /** By the id of an alert: addresses that are too many. */
  readonly leftOut = new Map<string, number>();
  private byEndpoint: Map<string, Addresses> | undefined;
  private told: Addresses | undefined;

  constructor(
    private readonly subscriptions: { find(id: string): Subscription | undefined; all(): Iterable<Subscription> },
    private readonly applications: { find(clientId: string): Application | undefined },
  ) {}

  /** Mail addresses of those whose subscriptions the alert concerns. */
  of(alert: Alert): string[] {
    const concerned = this.concernedBy(alert);
    if (concerned.size === 0) return [];
    this.told ??= this.toldOfEach();
    const mayBeTold = [...concerned].map(([owner, addresses]) =>
      [...addresses].filter((address) => this.told!.get(owner)?.has(address)),
    );
    const found = inTurns(mayBeTold, mostAddresses);
    const all = new Set([...concerned.values()].flatMap((addresses) => [...addresses]));
    if (found.length < all.size) this.leftOut.set(alert.id, all.size - found.length);
    return found;
  }

  private concernedBy(alert: Alert): Addresses {
    if (alert.rule === 'endpoint-open') {
      this.byEndpoint ??= this.groupByEndpoint();
      return this.byEndpoint.get(alert.subject.slice(endpoint.length)) ?? new Map();
    }
    const concerned: Addresses = new Map();
    if (!('subscriptionId' in alert.details)) return concerned;
    const subscription = this.subscriptions.find(alert.details.subscriptionId);
    const address = subscription && this.addressOf(subscription);
    if (address !== undefined) add(concerned, subscription!.ownerClientId, address);
    return concerned;
  }

  /** That of the subscription goes before that of its application. */
  private addressOf({ alertEmail, ownerClientId }: Subscription): string | undefined {
    return alertEmail ?? this.applications.find(ownerClientId)?.alertEmail ?? undefined;
  }

  /**
   * An endpoint is an origin or a callback URL, as it is called with one TLS identity. Nothing is held for a
   * subscription that is disabled, nor is it sent anything once the endpoint is back.
   */
  private groupByEndpoint(): Map<string, Addresses> {
    const groups = new Map<string, Addresses>();
    for (const subscription of this.subscriptions.all()) {
      if (subscription.disabledAt) continue;
      const address = this.addressOf(subscription);
      if (address === undefined) continue;
      for (const each of endpointsOf(subscription)) {
        const group = groups.get(each) ?? new Map<string, Set<string>>();
        groups.set(each, group);
        add(group, subscription.ownerClientId, address);
      }
    }
    return groups;
  }

  /** In the order of the alphabet, so that they are the same ones in each round of each process. */
  private toldOfEach(): Addresses {
    const all: Addresses = new Map();
    for (const subscription of this.subscriptions.all()) {
      const address = this.addressOf(subscription);
      if (address !== undefined) add(all, subscription.ownerClientId, address);
    }
    for (const [owner, addresses] of all)
      if (addresses.size > mostAddresses) all.set(owner, new Set([...addresses].sort().slice(0, mostAddresses)));
    return all;
  }
}

function add(to: Addresses, owner: string, address: string): void {
  const others = to.get(owner);
  if (others) others.add(address);
  else to.set(owner, new Set([address]));
}

/** One of each group after the other, so that a large one leaves none to be taken from the others. */
function inTurns(groups: readonly (readonly string[])[], most: number): string[] {
  const taken = new Set<string>();
  const longest = Math.max(...groups.map(({ length }) => length));
  for (let turn = 0; turn < longest; turn++)
    for (const group of groups) {
      if (taken.size === most) return [...taken];
      if (turn < group.length) taken.add(group[turn]!);
    }
  return [...taken];
}
