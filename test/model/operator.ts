import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { ConflictProblem } from '../../src/infra/http/problem.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { cancel } from '../../src/ledger/cancel.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { MeantCounter } from '../../src/replays/count-meant.service.js';
import { statesOf, type ReplayKind } from '../../src/replays/replay.js';
import { Replays } from '../../src/replays/replays.service.js';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import type { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import type { DeliveryGuarantee } from '../../src/subscriptions/subscription.js';
import type { SubscriptionVerb } from './actions.js';
import { retryPolicy, type Judge } from './judge.js';
import { plainCipher } from '../support/secrets.js';
import { subscriptionsService } from '../support/subscriptions-service.js';

/** Does what the admin API does, with the program's own services, and tells the judge of it. */
export class Operator {
  private readonly subscriptions: SubscriptionsService;
  private readonly policies: RetryPolicies;
  private readonly openEndpoints: OpenEndpoints;
  private readonly replays: Replays;
  private readonly subscriptionIds: string[] = [];

  constructor(
    private readonly postgres: Postgres,
    private readonly judge: Judge,
  ) {
    const catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres, plainCipher);
    const events = new OperationalEvents();
    this.subscriptions = subscriptionsService(catalogue, directory, postgres, events, plainCipher);
    this.policies = new RetryPolicies(postgres, catalogue);
    this.openEndpoints = new OpenEndpoints(postgres, events);
    this.replays = new Replays(postgres, new MeantCounter(postgres), catalogue, directory);
  }

  async setUp(): Promise<void> {
    await this.policies.replaceGeneral(retryPolicy);
  }

  async subscribe(deliveryGuarantee: DeliveryGuarantee, isOrdered: boolean): Promise<void> {
    // One endpoint for all, so that they compete for the room in its window.
    const input = { callbackUrl: 'http://receiver/', auth: '', channels: [{ channel: 'cases', filters: {} }] };
    const made = await this.subscriptions.create('owner', { ...input, deliveryGuarantee });
    const { id } = made.subscription;
    // By its `auth` the receiver knows the subscription of a call.
    await this.subscriptions.update(id, { auth: id });
    this.subscriptionIds.push(id);
    this.judge.guarantees.set(id, deliveryGuarantee);
    if (isOrdered) await this.carryOut('keep-order', id);
  }

  async operate(pick: number, verb: 'cancel' | 'retry'): Promise<void> {
    const delivery = this.judge.pick(pick);
    if (!delivery) return;
    this.judge.operated(delivery.key, verb);
    if (verb === 'cancel') await cancel(this.postgres, delivery);
    else await retryNow(this.postgres, delivery);
  }

  async change(pick: number, verb: SubscriptionVerb): Promise<void> {
    const { restraint, removed } = this.judge;
    // There are seldom more than a few paused ones.
    const ids = verb === 'drop-held' ? restraint.pausedSubscriptions : this.subscriptionIds;
    const id = ids[pick % ids.length];
    if (id !== undefined && !removed.has(id)) await this.carryOut(verb, id);
  }

  /** A dispatcher carries it out. */
  async begin(pick: number, kind: ReplayKind, { all, isSlow }: { all: boolean; isSlow: boolean }): Promise<void> {
    const subscriptionId = this.subscriptionIds[pick % this.subscriptionIds.length]!;
    const { usual, allowed } = statesOf[kind];
    const states = [...(all ? allowed : usual)];
    const replay = await this.replays.create({
      kind,
      selection: { subscriptions: [subscriptionId], states },
      onlyMissed: !states.includes('delivered'),
      ratePerSecond: kind === 'replay' ? (isSlow ? 1 : 100) : null,
      startAt: undefined,
      stopAt: undefined,
      confirm: undefined,
      note: undefined,
    });
    this.judge.bulkAsked({ id: replay.id, kind, states, subscriptionId });
  }

  /** All that it has begun is done. */
  async isDone(): Promise<boolean> {
    const replays = await this.replays.list({}, 1000);
    return replays.every(({ state }) => state === 'done');
  }

  /** Closes the circuit breaker of one of the endpoints in trouble. */
  async reset(pick: number): Promise<void> {
    await this.openEndpoints.refresh();
    const open = this.openEndpoints.list();
    const endpoint = open[pick % open.length];
    if (endpoint && (await this.openEndpoints.reset([endpoint.address], () => Promise.resolve())))
      this.judge.restraint.reset();
  }

  /** Those that may be resumed already; the others are dropping what they held. */
  async resumeAll(): Promise<void> {
    for (const id of this.judge.restraint.pausedSubscriptions)
      if (!this.judge.removed.has(id)) await this.carryOut('resume', id);
  }

  private async carryOut(verb: SubscriptionVerb, id: string): Promise<void> {
    const { removed, disabled, restraint, order, publications } = this.judge;
    switch (verb) {
      case 'remove':
        removed.add(id);
        return this.subscriptions.remove(id);
      case 'disable':
        disabled.add(id);
        return this.subscriptions.disable(id);
      case 'enable':
        await this.subscriptions.update(id, {});
        return;
      case 'pause':
        await this.subscriptions.pause(id);
        return restraint.paused(id, publications.count);
      case 'resume':
        return this.resume(id);
      case 'drop-held':
        this.judge.dropAsked(id);
        await this.subscriptions.dropHeld(id);
        return;
      case 'keep-order':
        await this.subscriptions.set(id, { ordering: 'per-object' });
        return order.kept(id);
      case 'limit-rate':
        await this.subscriptions.set(id, { ratePerSecond: 1 });
        return restraint.limited(id, publications.count);
      case 'lift-rate':
        restraint.unlimited(id);
        await this.subscriptions.set(id, { ratePerSecond: null });
        return;
      case 'end-order':
        order.ended(id);
        await this.subscriptions.set(id, { ordering: 'none' });
        return;
    }
  }

  private async resume(id: string): Promise<void> {
    const { restraint } = this.judge;
    const pausedFrom = restraint.resumed(id); // while it is resumed they may be called already
    try {
      await this.subscriptions.resume(id);
    } catch (error) {
      if (!(error instanceof ConflictProblem) || pausedFrom === undefined) throw error;
      restraint.paused(id, pausedFrom);
    }
  }
}
