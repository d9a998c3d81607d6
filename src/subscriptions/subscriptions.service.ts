import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { IsNull, Not, type EntityManager } from 'typeorm';
import type { Application } from '../auth/application.js';
import { AuditLog } from '../audit/audit-log.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ConflictProblem, NotFoundProblem, PermissionProblem } from '../infra/http/problem.js';
import type { CredentialChanges } from '../credentials/credentials-io.js';
import { credentialsOf } from '../credentials/credentials.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { findNewestHeld, isDropping, noteDrop } from '../ledger/drop-held.js';
import { noteOrderEnding, withdrawOrderEnding } from '../ledger/end-of-order.js';
import { noteEnding, withdrawEnding } from '../ledger/end-of-subscription.js';
import { lookNow } from '../ledger/held-subscriptions.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { addSigningKey } from './add-signing-key.js';
import { noteSigningKeys } from './note-signing-keys.js';
import { noteSubscription } from './note-subscription.js';
import { eraseSigningKeysOf } from './signing-key-rows.js';
import { readParts, secretsToStore } from './secrets-to-store.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionEntity } from './subscription.entity.js';
import { authPlace, type Subscription } from './subscription.js';

/** What a subscriber says of it. */
export type SubscriptionInput = Pick<Subscription, 'callbackUrl' | 'auth' | 'channels' | 'deliveryGuarantee'> & {
  credentials?: CredentialChanges | undefined;
  /** Undefined: as it was. */
  alertEmail?: string | null | undefined;
};
/** What an operator may set. */
export type SubscriptionSettings = Pick<
  Subscription,
  'deliveryGuarantee' | 'timeoutSeconds' | 'maxConcurrency' | 'ratePerSecond' | 'ordering' | 'alertEmail'
>;

/** Reads from memory, after loading the changes of other processes: a subscription that was answered with 201 is found. */
@Injectable()
export class SubscriptionsService {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: SubscriptionDirectory,
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
    private readonly cipher: SecretCipher,
  ) {}

  async list(): Promise<Subscription[]> {
    await this.catalogue.refresh();
    return this.directory.list();
  }

  /** From memory alone: for callers that know it to be new enough. */
  find(id: string): Subscription | undefined {
    return this.directory.find(id);
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<Subscription> {
    await this.catalogue.refresh();
    const subscription = this.directory.find(id);
    if (!subscription) throw notFound();
    return subscription;
  }

  /**
   * @throws {NotFoundProblem}
   * @throws {PermissionProblem} unless it is the application's own, or the application is a superuser
   */
  async getOwn(id: string, { clientId, isSuperuser }: Application): Promise<Subscription> {
    const subscription = await this.get(id);
    if (subscription.ownerClientId === clientId || isSuperuser) return subscription;
    throw new PermissionProblem('permission_denied', 'This abonnement belongs to another application.');
  }

  /**
   * @param isSigned whether it gets a signing key
   * @returns it, and the secret of its signing key, which is shown this once
   */
  async create(
    ownerClientId: string,
    input: SubscriptionInput,
    { isSigned = false } = {},
  ): Promise<{ subscription: Subscription; secret: string | undefined }> {
    // v4, not v7: clients find the base of a resource URL with a pattern that fits v4 only (docs/decisions/0011).
    const id = randomUUID();
    const stored = { ...input, ...secretsToStore(this.cipher, id, input) };
    const { secret, after } = await this.catalogue.change(async (manager, version) => {
      await manager.insert(SubscriptionEntity, { ...stored, id, ownerClientId, ordering: 'none', version });
      const created = await manager.findOneByOrFail(SubscriptionEntity, { id });
      await noteSubscription(manager, this.cipher, 'created', null, created);
      if (!isSigned) return { after: created, secret: undefined };
      const added = await addSigningKey(manager, this.cipher, id, { scheme: 'v1' });
      await noteSigningKeys(manager, 'signing-key-created', id, [], [added.key]);
      return { after: created, secret: added.secret };
    });
    return { subscription: this.latest(after), secret };
  }

  /**
   * An undefined field stays as it is, and so does what an operator set. A disabled subscription is enabled: its callback was
   * proved anew.
   * @throws {NotFoundProblem}
   */
  async update(id: string, changes: Partial<SubscriptionInput>): Promise<Subscription> {
    const toChange = (entity: SubscriptionEntity) => ({
      ...changes,
      ...secretsToStore(this.cipher, id, changes, entity.credentials),
      disabledAt: null,
    });
    const changed = await this.change('changed', id, always, toChange, (manager) => withdrawEnding(manager, id));
    if (!changed) throw notFound();
    if (isDisabled(changed.before)) this.events.report({ event: 'subscription.enabled', subscriptionId: id });
    return this.latest(changed.after);
  }

  /**
   * An undefined field stays as it is. `ordering` counts for notifications accepted from then on: with `per-object` those on their
   * way are not waited for, with `none` what is in line goes within seconds.
   * @throws {NotFoundProblem}
   */
  async set(id: string, settings: Partial<SubscriptionSettings>): Promise<Subscription> {
    const changed = await this.change('changed', id, always, settings, async (manager, version) => {
      if (settings.ordering === 'none') await noteOrderEnding(manager, id, version);
      else if (settings.ordering) await withdrawOrderEnding(manager, id);
      // What is held for the rate it had goes on at the one that it has now.
      if (settings.ratePerSecond !== undefined) await lookNow(manager, id);
    });
    return changed ? this.latest(changed.after) : this.get(id);
  }

  /**
   * What is sent from now on carries them. An undefined part stays as it is.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} when a part is to stay that cannot be decrypted here
   */
  async setCredentials(id: string, credentials: CredentialChanges): Promise<Subscription> {
    const changed = await this.change('credentials-changed', id, always, (entity) =>
      secretsToStore(this.cipher, id, { credentials }, entity.credentials),
    );
    return changed ? this.latest(changed.after) : this.get(id);
  }

  /** @throws {NotFoundProblem} */
  async enable(id: string): Promise<Subscription> {
    const changed = await this.change('enabled', id, isDisabled, { disabledAt: null }, (manager) =>
      withdrawEnding(manager, id),
    );
    if (changed) this.events.report({ event: 'subscription.enabled', subscriptionId: id });
    return changed ? this.latest(changed.after) : this.get(id);
  }

  /**
   * Nothing more is sent until it is enabled. Deliveries that have not ended fail, those that wait within seconds; what has not
   * failed when it is enabled again is sent. Does nothing the second time: all open calls to a receiver may answer 410 together.
   */
  async disable(id: string): Promise<void> {
    const before = await this.change('disabled', id, isEnabled, { disabledAt: new Date() }, (manager, version) =>
      noteEnding(manager, id, 'failed', version),
    );
    if (before) this.events.report({ event: 'subscription.disabled', subscriptionId: id });
  }

  /**
   * Its deliveries are held from now on, new ones too; calls that are open go on. Independent of whether it is disabled.
   * @throws {NotFoundProblem}
   */
  async pause(id: string): Promise<Subscription> {
    const changed = await this.change('paused', id, isRunning, { pausedAt: new Date() }, (manager) =>
      lookNow(manager, id),
    );
    if (changed) this.events.report({ event: 'subscription.paused', subscriptionId: id });
    return changed ? this.latest(changed.after) : this.get(id);
  }

  /**
   * What is held goes out, the oldest first.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} while what it held is being dropped
   */
  async resume(id: string): Promise<Subscription> {
    const changed = await this.change('resumed', id, isPaused, { pausedAt: null }, async (manager) => {
      if (await isDropping(manager, id)) throw stillDropping();
      await lookNow(manager, id);
    });
    if (changed) this.events.report({ event: 'subscription.resumed', subscriptionId: id });
    return changed ? this.latest(changed.after) : this.get(id);
  }

  /**
   * Has the deliveries cancelled that are held for a paused subscription at this moment, within seconds. Those that are accepted
   * later are held as before.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} unless it is paused
   */
  async dropHeld(id: string): Promise<Subscription> {
    const subscription = await this.get(id);
    if (!isPaused(subscription)) throw notPaused();
    const newest = await findNewestHeld(this.postgres, id);
    if (newest !== undefined)
      await this.postgres.dataSource.transaction(async (manager) => {
        // The lock makes a resumption wait, which then finds the drop.
        const where = { id, deletedAt: IsNull(), pausedAt: Not(IsNull()) };
        const paused = await manager.findOne(SubscriptionEntity, { where, lock: { mode: 'pessimistic_read' } });
        if (!paused) throw notPaused();
        await noteDrop(manager, id, newest);
        const [action, subject] = ['subscription.held-dropped', `subscription/${id}`];
        await AuditLog.note(manager, { action, subject, before: {}, after: { upToNotification: newest } });
      });
    return subscription;
  }

  /**
   * No notification accepted after this goes to the subscription. Deliveries that have not ended are cancelled, those that wait
   * within seconds. Its secrets are not kept.
   * @throws {NotFoundProblem}
   */
  async remove(id: string): Promise<void> {
    const withoutSecrets = { deletedAt: new Date(), auth: '', credentials: null, alertEmail: null };
    const before = await this.change('deleted', id, always, withoutSecrets, async (manager, version) => {
      await noteEnding(manager, id, 'cancelled', version);
      await eraseSigningKeysOf(manager, id);
    });
    if (!before) throw notFound();
  }

  /** As it was changed, where it was deleted since: a change that happened is not answered as if there were no subscription. */
  private latest(after: SubscriptionEntity): Subscription {
    const { id, auth, credentials } = after;
    const secrets = () => ({
      auth: this.cipher.decrypt(auth, authPlace(id)),
      credentials: credentialsOf(readParts(this.cipher, id, credentials)),
    });
    return this.directory.find(id) ?? { ...after, ...secrets(), unreadable: null, signingKeys: [] };
  }

  /**
   * @param done in the audit log
   * @param isToChange whether it is changed, as it is now: no other change of the catalogue is under way
   * @param also runs in the same transaction, after the change
   * @returns undefined: it does not exist, or was not to be changed
   */
  private async change(
    done: string,
    id: string,
    isToChange: (subscription: SubscriptionEntity) => boolean,
    changes: Partial<SubscriptionEntity> | ((before: SubscriptionEntity) => Partial<SubscriptionEntity>),
    also?: (manager: EntityManager, version: number) => Promise<void>,
  ): Promise<{ before: SubscriptionEntity; after: SubscriptionEntity } | undefined> {
    try {
      return await this.catalogue.change(async (manager, version) => {
        const before = await manager.findOneBy(SubscriptionEntity, { id, deletedAt: IsNull() });
        if (!before || !isToChange(before)) throw new NothingToChange();
        const changed = typeof changes === 'function' ? changes(before) : changes;
        await manager.update(SubscriptionEntity, { id }, { ...changed, version });
        await also?.(manager, version);
        const after = await manager.findOneByOrFail(SubscriptionEntity, { id });
        await noteSubscription(manager, this.cipher, done, before, after);
        return { before, after };
      });
    } catch (error) {
      // The rollback keeps a call that changes nothing from raising the version.
      if (error instanceof NothingToChange) return undefined;
      throw error;
    }
  }
}

class NothingToChange extends Error {}

type Marks = Pick<Subscription, 'disabledAt' | 'pausedAt'>;
const always = () => true;
const isDisabled = ({ disabledAt }: Marks): boolean => disabledAt !== null;
const isEnabled = ({ disabledAt }: Marks): boolean => disabledAt === null;
const isPaused = ({ pausedAt }: Marks): boolean => pausedAt !== null;
const isRunning = ({ pausedAt }: Marks): boolean => pausedAt === null;

const notFound = () => new NotFoundProblem('There is no such abonnement.');
const notPaused = () =>
  new ConflictProblem('subscription-not-paused', 'Only what a paused subscription holds is dropped.');
const stillDropping = () =>
  new ConflictProblem('subscription-dropping', 'What it held is still being dropped; resume it in a few seconds.');
