import { Injectable } from '@nestjs/common';
import { longestStep, stepOf } from './steps.js';

/** How often each happened. */
export interface Counts {
  /** Notifications. */
  accepted: number;
  /**
   * Notifications that were accepted and are not delivered, because a rule of their channel found them equal to earlier
   * ones.
   */
  duplicates: number;
  /** Deliveries. */
  delivered: number;
  /** Calls to receivers after which their delivery was not delivered. */
  failedAttempts: number;
  /** Deliveries that became dead letters. */
  gaveUp: number;
}

/**
 * `took`: of all that are timed, how many were delivered after a time; its id is the number of a step of it (steps.ts).
 * `fetched`: of all that were delivered, those that their subscriber has fetched.
 */
export type TallyKind = 'all' | 'channel' | 'application' | 'subscription' | 'took' | 'fetched';

export interface Tallied {
  kind: TallyKind;
  /** The name of a channel, a client id, the id of a subscription, of `took` a step; otherwise empty. */
  id: string;
  counts: Counts;
  /** Of a subscription: its deliveries that were delivered without a call. */
  fetched?: number;
}

export const noCounts = (): Counts => ({ accepted: 0, duplicates: 0, delivered: 0, failedAttempts: 0, gaveUp: 0 });

/**
 * Adds up what this process does, in memory: a notification pays for a few increments. There is an entry for each
 * channel, application and subscription that something happened to since it was last emptied.
 */
@Injectable()
export class Tally {
  private all = noCounts();
  private readonly byKind = {
    channel: new Map<string, Counts>(),
    application: new Map<string, Counts>(),
    subscription: new Map<string, Counts>(),
  };
  private allFetched = 0;
  private readonly fetchedOf = new Map<string, number>();
  private readonly took = Array.from({ length: longestStep + 1 }, () => 0);

  /** @param publisher its client id */
  accepted(channel: string, publisher: string): void {
    this.all.accepted += 1;
    this.of('channel', channel).accepted += 1;
    this.of('application', publisher).accepted += 1;
  }

  /** @param publisher its client id */
  duplicate(channel: string, publisher: string): void {
    this.all.duplicates += 1;
    this.of('channel', channel).duplicates += 1;
    this.of('application', publisher).duplicates += 1;
  }

  /** @param tookMs since its notification was accepted; null: of this one it tells nothing */
  delivered(subscriptionId: string, tookMs: number | null): void {
    this.all.delivered += 1;
    this.of('subscription', subscriptionId).delivered += 1;
    if (tookMs !== null) this.took[stepOf(tookMs)]! += 1;
  }

  /** Deliveries that ended because their subscriber has their notifications: no call to it succeeded. */
  fetched(subscriptionId: string, count: number): void {
    if (count === 0) return;
    this.all.delivered += count;
    this.of('subscription', subscriptionId).delivered += count;
    this.allFetched += count;
    this.addFetched(subscriptionId, count);
  }

  failedAttempt(subscriptionId: string): void {
    this.all.failedAttempts += 1;
    this.of('subscription', subscriptionId).failedAttempts += 1;
  }

  /** @param subscriptionId null: of several; `gaveUpTogether` counts them for each, where they are known */
  gaveUp(subscriptionId: string | null, count: number): void {
    this.all.gaveUp += count;
    if (subscriptionId !== null) this.of('subscription', subscriptionId).gaveUp += count;
  }

  /** A delivery of each, which `gaveUp` has counted as one of several. */
  gaveUpTogether(subscriptionIds: readonly string[]): void {
    for (const id of subscriptionIds) this.of('subscription', id).gaveUp += 1;
  }

  /** The counts until now; it counts from zero again. */
  empty(): Tallied[] {
    const tallied: Tallied[] = [];
    if (Object.values(this.all).some((count) => count > 0)) tallied.push({ kind: 'all', id: '', counts: this.all });
    this.all = noCounts();
    // Beside all, of which it is a part: what is written comes to the table in the same transaction.
    const ofAll = { ...noCounts(), delivered: this.allFetched };
    if (this.allFetched > 0) tallied.push({ kind: 'fetched', id: '', counts: ofAll });
    this.allFetched = 0;
    for (const kind of ['channel', 'application', 'subscription'] as const) {
      for (const [id, counts] of this.byKind[kind]) {
        const fetched = kind === 'subscription' ? this.fetchedOf.get(id) : undefined;
        tallied.push({ kind, id, counts, ...(fetched !== undefined && { fetched }) });
      }
      this.byKind[kind].clear();
    }
    this.fetchedOf.clear();
    this.took.forEach((delivered, step) => {
      if (delivered > 0) tallied.push({ kind: 'took', id: String(step), counts: { ...noCounts(), delivered } });
    });
    this.took.fill(0);
    return tallied;
  }

  /** Counts once more what `empty` has given, and could not be written. */
  putBack(tallied: readonly Tallied[]): void {
    for (const { kind, id, counts, fetched } of tallied) {
      if (fetched !== undefined) this.addFetched(id, fetched);
      if (kind === 'took') this.took[Number(id)]! += counts.delivered;
      else if (kind === 'fetched') this.allFetched += counts.delivered;
      else add(kind === 'all' ? this.all : this.of(kind, id), counts);
    }
  }

  private addFetched(subscriptionId: string, count: number): void {
    this.fetchedOf.set(subscriptionId, (this.fetchedOf.get(subscriptionId) ?? 0) + count);
  }

  private of(kind: keyof Tally['byKind'], id: string): Counts {
    const counts = this.byKind[kind];
    let found = counts.get(id);
    if (!found) counts.set(id, (found = noCounts()));
    return found;
  }
}

function add(to: Counts, counts: Counts): void {
  for (const name of Object.keys(counts) as (keyof Counts)[]) to[name] += counts[name];
}
