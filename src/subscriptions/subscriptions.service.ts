import { Injectable } from '@nestjs/common';
import { IsNull, Not, type EntityManager } from 'typeorm';
import type { Application } from '../auth/application.js';
import { AuditLog } from '../audit/audit-log.js';
import { asNobody } from '../audit/author.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ConflictProblem, NotFoundProblem, PermissionProblem } from '../infra/http/problem.js';
import type { CredentialChanges } from '../credentials/credentials-io.js';
import { credentialsOf } from '../credentials/credentials.js';
import { reserveNothing, type Reserve } from '../request-keys/creation-requests.service.js';
import { DeletedMeanwhile } from '../request-keys/idempotency-key.js';
import { requireMatch } from '../infra/http/if-match.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { findNewestHeld, noteDrop } from '../ledger/drop-held.js';
import { OperationalEvents, type OperationalEvent } from '../operational-events/operational-events.service.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { readParts } from './secrets-to-store.js';
import { SubscriptionAllowance } from './subscription-allowance.service.js';
import {
  isDisabled,
  isPaused,
  newSubscriptionId,
  SubscriptionChanges,
  versionOf,
  type ChangedSubscription,
  type SubscriptionInput,
  type SubscriptionSettings,
} from './subscription-changes.js';
import { SubscriptionDirectory, type ListedSubscription } from './subscription-directory.service.js';
import { SubscriptionEntity } from './subscription.entity.js';
import { authPlace } from './subscription.js';

/** The condition of a change. */
interface Condition {
  /** Tags of the version that the subscription has to be in (`versionOf`); undefined: any. */
  ifMatch?: string | undefined;
}

type Work = (changing: SubscriptionChanges) => Promise<ChangedSubscription | undefined>;
type SubscriptionEvent = Extract<OperationalEvent['event'], `subscription.${string}`>;

/**
 * Reads from memory, after loading the changes of other processes: a subscription that was answered with 201 is found.
 * A change under a condition throws a `ChangedMeanwhileProblem` where that does not hold.
 */
@Injectable()
export class SubscriptionsService {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: SubscriptionDirectory,
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
    private readonly cipher: SecretCipher,
    private readonly allowance: SubscriptionAllowance,
  ) {}

  async list(): Promise<readonly ListedSubscription[]> {
    await this.catalogue.refresh();
    return this.directory.list();
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<ListedSubscription> {
    await this.catalogue.refresh();
    const subscription = this.directory.find(id);
    if (!subscription) throw notFound();
    return subscription;
  }

  /**
   * As it is now: for a request that has been carried out.
   * @throws {DeletedMeanwhile}
   */
  async getCreated(id: string): Promise<ListedSubscription> {
    await this.catalogue.refresh();
    const created = await this.postgres.dataSource.manager.findOneBy(SubscriptionEntity, { id, deletedAt: IsNull() });
    if (!created) throw new DeletedMeanwhile();
    return this.latest(created);
  }

  /**
   * @throws {NotFoundProblem}
   * @throws {PermissionProblem} unless it is the application's own, or the application is a superuser
   */
  async getOwn(id: string, application: Application): Promise<ListedSubscription> {
    await this.catalogue.refresh();
    return this.findOwn(id, application);
  }

  /**
   * From memory alone: for callers that know it to be new enough.
   * @throws as `getOwn`
   */
  findOwn(id: string, { clientId, isSuperuser }: Application): ListedSubscription {
    const subscription = this.directory.find(id);
    if (!subscription) throw notFound();
    if (subscription.ownerClientId === clientId || isSuperuser) return subscription;
    throw new PermissionProblem('permission_denied', 'This abonnement belongs to another application.');
  }

  /**
   * @param isSigned whether it gets a signing key
   * @returns it, and the secret of its signing key, which is shown this once
   * @throws {ConflictProblem} when its owner may not have another one, or not so large a one
   */
  async create(
    ownerClientId: string,
    input: SubscriptionInput & Partial<SubscriptionSettings>,
    { isSigned = false, reserve = reserveNothing }: { isSigned?: boolean; reserve?: Reserve } = {},
  ): Promise<{ subscription: ListedSubscription; secret: string | undefined }> {
    const { secret, after } = await this.catalogue.change(async (manager, version) => {
      const id = newSubscriptionId();
      await reserve(queryOf(manager), id);
      const changing = new SubscriptionChanges(manager, version, this.cipher);
      return this.within(manager, () => changing.create(ownerClientId, input, { isSigned, id }));
    });
    return { subscription: this.latest(after), secret };
  }

  /**
   * An undefined field stays as it is, and so does what an operator set. A disabled subscription is enabled: its
   * callback was proved anew.
   * @throws {NotFoundProblem}
   */
  update(id: string, changes: Partial<SubscriptionInput>, condition?: Condition): Promise<ListedSubscription> {
    return this.changed(id, (changing) => changing.update(id, changes), condition);
  }

  /**
   * An undefined field stays as it is. `ordering` counts for notifications accepted from then on: with `per-object`
   * those on their way are not waited for, with `none` what is in line goes within seconds. With a `callbackUrl`, which
   * was proved anew, a disabled subscription is enabled.
   * @throws {NotFoundProblem}
   */
  set(
    id: string,
    settings: Partial<SubscriptionSettings & Pick<SubscriptionInput, 'channels' | 'callbackUrl'>>,
    condition?: Condition,
  ): Promise<ListedSubscription> {
    return this.changed(id, (changing) => changing.set(id, settings), condition);
  }

  /**
   * Every call from now on carries them. An undefined part stays as it is.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} when a part is to stay that cannot be decrypted here
   */
  setCredentials(id: string, credentials: CredentialChanges, condition?: Condition): Promise<ListedSubscription> {
    return this.changed(id, (changing) => changing.setCredentials(id, credentials), condition);
  }

  /** @throws {NotFoundProblem} */
  enable(id: string, condition?: Condition): Promise<ListedSubscription> {
    return this.changed(id, (changing) => changing.enable(id), condition);
  }

  /**
   * Nothing more is sent until it is enabled. Deliveries that have not ended fail, those that wait within seconds; what
   * has not failed when it is enabled again is sent. Does nothing the second time: all open calls to a receiver may
   * answer 410 together. A change by Heraut itself: the worker may deliver in the course of the request that published.
   * @param ifVersion only where it is still at that version; undefined: in any case
   */
  async disable(id: string, ifVersion?: number): Promise<void> {
    await asNobody(() => this.change((changing) => changing.disable(id, ifVersion)));
  }

  /**
   * Its deliveries are held from now on, new ones too; calls that are open go on. Independent of whether it is
   * disabled.
   * @throws {NotFoundProblem}
   */
  pause(id: string, condition?: Condition): Promise<ListedSubscription> {
    return this.changed(id, (changing) => changing.pause(id), condition);
  }

  /**
   * Its held deliveries go out, the oldest first.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} while what it held is being dropped
   */
  resume(id: string, condition?: Condition): Promise<ListedSubscription> {
    return this.changed(id, (changing) => changing.resume(id), condition);
  }

  /**
   * Has the deliveries cancelled that are held for a paused subscription at this moment, within seconds. Those that are
   * accepted later are held as before.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} unless it is paused
   */
  async dropHeld(id: string, { ifMatch }: Condition = {}): Promise<ListedSubscription> {
    const subscription = await this.get(id);
    requireMatch(ifMatch, versionOf(subscription));
    if (!isPaused(subscription)) throw notPaused();
    const newest = await findNewestHeld(this.postgres, id);
    if (newest !== undefined)
      await this.postgres.entityTransaction(async (manager) => {
        // A resumption has locked it before it looks for a drop (isDropping): it waits, and finds this one.
        const where = { id, deletedAt: IsNull(), pausedAt: Not(IsNull()) };
        const paused = await manager.findOne(SubscriptionEntity, { where, lock: { mode: 'pessimistic_read' } });
        if (!paused) throw notPaused();
        requireMatch(ifMatch, versionOf(paused));
        await noteDrop(manager, id, newest);
        const [action, subject] = ['subscription.held-dropped', `subscription/${id}`];
        await AuditLog.note(manager, { action, subject, before: {}, after: { upToNotification: newest } });
      });
    return subscription;
  }

  /**
   * No notification accepted after this goes to the subscription. Deliveries that have not ended are cancelled, those
   * that wait within seconds. Its secrets are not kept.
   * @throws {NotFoundProblem}
   */
  async remove(id: string, condition?: Condition): Promise<void> {
    const changed = await this.change((changing) => changing.remove(id), condition);
    if (!changed) throw notFound();
  }

  /**
   * As it was changed, where it was deleted since: a change that happened is not answered as if there were no
   * subscription.
   */
  private latest(after: SubscriptionEntity): ListedSubscription {
    const { id, auth, credentials } = after;
    const listed = () => ({ createdAt: after.createdAt.getTime() / 1000, version: Number(after.version) });
    const secrets = () => ({
      auth: this.cipher.decrypt(auth, authPlace(id)),
      credentials: credentialsOf(readParts(this.cipher, id, credentials)),
    });
    return this.directory.find(id) ?? { ...after, ...listed(), ...secrets(), unreadable: null, signingKeys: [] };
  }

  /** @throws {ConflictProblem} when the owner would have more than an application may, or a channel is gone */
  private async within<Changed extends { before?: SubscriptionEntity; after: SubscriptionEntity } | undefined>(
    manager: EntityManager,
    work: () => Promise<Changed>,
  ): Promise<Changed> {
    const changed = await this.allowance.within(queryOf(manager), work, (of) => of?.after.id);
    if (!changed) return changed;
    const { before, after } = changed;
    if (after.channels !== before?.channels) await this.requireChannels(manager, after);
    return changed;
  }

  /** They were there when the request was checked, and a callback may have been called since. */
  private async requireChannels(manager: EntityManager, { channels }: SubscriptionEntity): Promise<void> {
    const names = channels.map(({ channel }) => channel);
    const [gone] = await manager.query<{ name: string }[]>(
      'SELECT name FROM channel WHERE name = ANY ($1::text[]) AND deleted_at IS NOT NULL LIMIT 1',
      [names],
    );
    if (gone) throw new ConflictProblem('channel-removed', `The channel ${gone.name} has just been removed.`);
  }

  /**
   * As `change`.
   * @returns it as it is then, also where it was not to be changed
   * @throws {NotFoundProblem}
   */
  private async changed(id: string, work: Work, condition?: Condition): Promise<ListedSubscription> {
    const changed = await this.change(work, condition);
    return changed ? this.latest(changed.after) : this.get(id);
  }

  /**
   * Undefined: it does not exist, or was not to be changed.
   * @throws {ConflictProblem} when its owner would have more than an application may
   */
  private async change(work: Work, { ifMatch }: Condition = {}): Promise<ChangedSubscription | undefined> {
    const report = (changed: ChangedSubscription) => {
      const event = eventOf(changed);
      if (event) this.events.report({ event, subscriptionId: changed.after.id });
    };
    return this.catalogue.changeIfNeeded(async (manager, version) => {
      const changing = new SubscriptionChanges(manager, version, this.cipher, ifMatch);
      return this.within(manager, () => work(changing));
    }, report);
  }
}

/** For operators; undefined: they are not told of this change. */
function eventOf({ before, after }: ChangedSubscription): SubscriptionEvent | undefined {
  if (isDisabled(before) !== isDisabled(after))
    return isDisabled(after) ? 'subscription.disabled' : 'subscription.enabled';
  if (isPaused(before) !== isPaused(after)) return isPaused(after) ? 'subscription.paused' : 'subscription.resumed';
  return undefined;
}

const notFound = () => new NotFoundProblem('There is no such abonnement.');
const notPaused = () =>
  new ConflictProblem('subscription-not-paused', 'Only what a paused subscription holds is dropped.');
