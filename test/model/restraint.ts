import type { OpenEndpoint } from '../../src/ledger/open-endpoints.js';
import type { Begun } from './calls.js';

/** How often each of it happened in a world. */
export interface RestraintTally {
  released: number;
  opened: number;
  probed: number;
  /** Endpoints in trouble that an operator has declared to be well. */
  reset: number;
}

/** The endpoints in trouble that a process knows of. */
type Known = () => ReadonlyMap<string, OpenEndpoint>;

/**
 * Knows which calls have to be left undone: those for a paused subscription, all but probes of a parked endpoint, and
 * those that were not released at the rate of their subscription.
 */
export class Restraint {
  readonly tally: RestraintTally = { released: 0, opened: 0, probed: 0, reset: 0 };
  /** By paused subscription: the first publication that was made after its pause was answered. */
  private readonly pausedFrom = new Map<string, number>();
  /** By subscription with a rate: the first publication that was made after it was set. */
  private readonly limitedFrom = new Map<string, number>();
  private readonly releasedKeys = new Set<string>();
  private readonly knownBy = new Map<number, Known>();
  /**
   * Deliveries that were released with a claim. Their message may come twice, also when the first one was called and
   * its process killed.
   */
  private readonly probes = new Set<string>();
  /** By process and subscription: claims that it was given and has not used. */
  private readonly claims = new Map<string, number>();
  /** By process: openings after which it has made the call that was under way when it heard of them. */
  private readonly excused = new Set<string>();

  /** @param publication number of the next one */
  paused(subscriptionId: string, publication: number): void {
    if (!this.pausedFrom.has(subscriptionId)) this.pausedFrom.set(subscriptionId, publication);
  }

  /** @returns the publication from which on it was paused; undefined: it was not */
  resumed(subscriptionId: string): number | undefined {
    const from = this.pausedFrom.get(subscriptionId);
    this.pausedFrom.delete(subscriptionId);
    return from;
  }

  /** @param publication number of the next one */
  limited(subscriptionId: string, publication: number): void {
    if (!this.limitedFrom.has(subscriptionId)) this.limitedFrom.set(subscriptionId, publication);
  }

  unlimited(subscriptionId: string): void {
    this.limitedFrom.delete(subscriptionId);
  }

  get pausedSubscriptions(): string[] {
    return [...this.pausedFrom.keys()];
  }

  /** An operator has closed the circuit breaker of an endpoint. */
  reset(): void {
    this.tally.reset++;
  }

  started(process: number, known: Known): void {
    this.knownBy.set(process, known);
  }

  /** The ledger has answered a process. */
  answered(process: number, statement: string, rows: readonly unknown[]): void {
    if (statement === 'open-endpoints') this.tally.opened += (rows as { is_new: boolean }[]).filter(isNew).length;
    if (statement === 'claim-probes')
      for (const { subscription_id: id } of rows as { subscription_id: string }[]) this.claimed(process, id);
    if (statement === 'release')
      for (const { notification_id: notification, subscription_id: id } of rows as Released[])
        if (notification !== null) this.released(process, notification, id);
  }

  /** @returns why the call should not have been begun */
  objectionTo({ process, key, publication }: Begun): string | undefined {
    const subscriptionId = key.split(' ')[1]!;
    const pausedFrom = this.pausedFrom.get(subscriptionId);
    if (pausedFrom !== undefined && publication >= pausedFrom)
      return `${key}, accepted for a paused subscription, is called when that is resumed: process ${process} called it`;
    if (publication >= (this.limitedFrom.get(subscriptionId) ?? Infinity) && !this.releasedKeys.has(key))
      return `${key} is called at the rate of its subscription: process ${process} called it, and it was never released`;
    const open = [...(this.knownBy.get(process)?.() ?? new Map<string, OpenEndpoint>()).values()];
    if (open.length === 0 || this.probes.has(key) || this.takeClaim(process, subscriptionId)) return undefined;
    // Of a URL one call at a time is made by a process (the setting of the model's spec): no other one can have had its
    // place before.
    const openings = open.map(({ address, openedAt }) => `${process} ${address} ${openedAt.getTime()}`);
    const isExcused = openings.some((opening) => !this.excused.has(opening));
    for (const opening of openings) this.excused.add(opening);
    return isExcused ? undefined : `${key} is called at a parked endpoint as a probe: process ${process} has no claim`;
  }

  private claimed(process: number, subscriptionId: string): void {
    this.tally.probed++;
    const key = `${process} ${subscriptionId}`;
    this.claims.set(key, (this.claims.get(key) ?? 0) + 1);
  }

  private released(process: number, notificationId: string, subscriptionId: string): void {
    this.tally.released++;
    this.releasedKeys.add(`${notificationId} ${subscriptionId}`);
    if (this.takeClaim(process, subscriptionId)) this.probes.add(`${notificationId} ${subscriptionId}`);
  }

  private takeClaim(process: number, subscriptionId: string): boolean {
    const key = `${process} ${subscriptionId}`;
    const claims = this.claims.get(key) ?? 0;
    if (claims > 0) this.claims.set(key, claims - 1);
    return claims > 0;
  }
}

interface Released {
  notification_id: string | null;
  subscription_id: string;
}

const isNew = (row: { is_new: boolean }): boolean => row.is_new;
