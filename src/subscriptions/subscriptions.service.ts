import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { IsNull, Not, type EntityManager } from 'typeorm';
import type { Application } from '../auth/application.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ConflictProblem, NotFoundProblem, PermissionProblem } from '../infra/http/problem.js';
import type { CredentialChanges } from '../credentials/credentials-io.js';
import { changedParts, noParts, partsOf, toStore, type CredentialParts } from '../credentials/credentials.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { findNewestHeld, isDropping, noteDrop } from '../ledger/drop-held.js';
import { noteOrderEnding, withdrawOrderEnding } from '../ledger/end-of-order.js';
import { noteEnding, withdrawEnding } from '../ledger/end-of-subscription.js';
import { lookNow } from '../ledger/held-subscriptions.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { SecretCipher, UnreadableSecret } from '../secrets/secret-cipher.service.js';
import { addSigningKey } from './add-signing-key.js';
import { eraseSigningKeysOf } from './signing-key-rows.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionEntity } from './subscription.entity.js';
import { authPlace, credentialsPlace, type Subscription } from './subscription.js';

/** What a subscriber says of it. */
export type SubscriptionInput = Pick<Subscription, 'callbackUrl' | 'auth' | 'channels' | 'deliveryGuarantee'> & {
  credentials?: CredentialChanges | undefined;
};
/** What an operator may set. */
export type SubscriptionSettings = Pick<
  Subscription,
  'deliveryGuarantee' | 'timeoutSeconds' | 'maxConcurrency' | 'ratePerSecond' | 'ordering'
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
    const stored = { ...input, ...this.secretsToStore(id, input) };
    const secret = await this.catalogue.change(async (manager, version) => {
      await manager.insert(SubscriptionEntity, { ...stored, id, ownerClientId, ordering: 'none', version });
      return isSigned ? (await addSigningKey(manager, this.cipher, id, { scheme: 'v1' })).secret : undefined;
    });
    return { subscription: await this.get(id), secret };
  }

  /**
   * An undefined field stays as it is, and so does what an operator set. A disabled subscription is enabled: its callback was
   * proved anew.
   * @throws {NotFoundProblem}
   */
  async update(id: string, changes: Partial<SubscriptionInput>): Promise<Subscription> {
    const toChange = (entity: SubscriptionEntity) => ({
      ...changes,
      ...this.secretsToStore(id, changes, entity.credentials),
      disabledAt: null,
    });
    const before = await this.change(id, always, toChange, (manager) => withdrawEnding(manager, id));
    if (!before) throw notFound();
    if (isDisabled(before)) this.events.report({ event: 'subscription.enabled', subscriptionId: id });
    return this.get(id);
  }

  /**
   * An undefined field stays as it is. `ordering` counts for notifications accepted from then on: with `per-object` those on their
   * way are not waited for, with `none` what is in line goes within seconds.
   * @throws {NotFoundProblem}
   */
  async set(id: string, settings: Partial<SubscriptionSettings>): Promise<Subscription> {
    await this.change(id, always, settings, async (manager, version) => {
      if (settings.ordering === 'none') await noteOrderEnding(manager, id, version);
      else if (settings.ordering) await withdrawOrderEnding(manager, id);
      // What is held for the rate it had goes on at the one that it has now.
      if (settings.ratePerSecond !== undefined) await lookNow(manager, id);
    });
    return this.get(id);
  }

  /**
   * What is sent from now on carries them. An undefined part stays as it is.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} when a part is to stay that cannot be decrypted here
   */
  async setCredentials(id: string, credentials: CredentialChanges): Promise<Subscription> {
    await this.change(id, always, (entity) => this.secretsToStore(id, { credentials }, entity.credentials));
    return this.get(id);
  }

  /** @throws {NotFoundProblem} */
  async enable(id: string): Promise<Subscription> {
    const before = await this.change(id, isDisabled, { disabledAt: null }, (manager) => withdrawEnding(manager, id));
    if (before) this.events.report({ event: 'subscription.enabled', subscriptionId: id });
    return this.get(id);
  }

  /**
   * Nothing more is sent until it is enabled. Deliveries that have not ended fail, those that wait within seconds; what has not
   * failed when it is enabled again is sent. Does nothing the second time: all open calls to a receiver may answer 410 together.
   */
  async disable(id: string): Promise<void> {
    const before = await this.change(id, isEnabled, { disabledAt: new Date() }, (manager, version) =>
      noteEnding(manager, id, 'failed', version),
    );
    if (before) this.events.report({ event: 'subscription.disabled', subscriptionId: id });
  }

  /**
   * Its deliveries are held from now on, new ones too; calls that are open go on. Independent of whether it is disabled.
   * @throws {NotFoundProblem}
   */
  async pause(id: string): Promise<Subscription> {
    const before = await this.change(id, isRunning, { pausedAt: new Date() }, (manager) => lookNow(manager, id));
    if (before) this.events.report({ event: 'subscription.paused', subscriptionId: id });
    return this.get(id);
  }

  /**
   * What is held goes out, the oldest first.
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} while what it held is being dropped
   */
  async resume(id: string): Promise<Subscription> {
    const before = await this.change(id, isPaused, { pausedAt: null }, async (manager) => {
      if (await isDropping(manager, id)) throw stillDropping();
      await lookNow(manager, id);
    });
    if (before) this.events.report({ event: 'subscription.resumed', subscriptionId: id });
    return this.get(id);
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
      });
    return subscription;
  }

  /**
   * No notification accepted after this goes to the subscription. Deliveries that have not ended are cancelled, those that wait
   * within seconds. Its secrets are not kept.
   * @throws {NotFoundProblem}
   */
  async remove(id: string): Promise<void> {
    const withoutSecrets = { deletedAt: new Date(), auth: '', credentials: null };
    const before = await this.change(id, always, withoutSecrets, async (manager, version) => {
      await noteEnding(manager, id, 'cancelled', version);
      await eraseSigningKeysOf(manager, id);
    });
    if (!before) throw notFound();
  }

  /** @param stored the credentials there are, as they are stored */
  private secretsToStore(
    id: string,
    { auth, credentials }: Partial<SubscriptionInput>,
    stored: string | null = null,
  ): { auth: string | undefined; credentials: string | null | undefined } {
    const newAuth = credentials?.auth ?? auth;
    const parts = credentials && toStore(changedParts(this.partsToKeep(id, credentials, stored), credentials));
    return {
      auth: newAuth === undefined ? undefined : this.cipher.encrypt(newAuth, authPlace(id)),
      credentials: parts && this.cipher.encrypt(parts, credentialsPlace(id)),
    };
  }

  /** Those that are to be replaced as a whole need not be readable. */
  private partsToKeep(id: string, changes: CredentialChanges, stored: string | null): CredentialParts {
    const isWhole = changes.authorization && changes.tls !== undefined && changes.headers !== undefined;
    if (stored === null || isWhole) return noParts;
    try {
      return partsOf(this.cipher.decrypt(stored, credentialsPlace(id)));
    } catch (error) {
      if (error instanceof UnreadableSecret) throw unreadable();
      throw error;
    }
  }

  /**
   * @param isToChange whether it is changed, as it is now: no other change of the catalogue is under way
   * @param also runs in the same transaction, after the change
   * @returns what it was before; undefined: it does not exist, or was not to be changed
   */
  private async change(
    id: string,
    isToChange: (subscription: SubscriptionEntity) => boolean,
    changes: Partial<SubscriptionEntity> | ((before: SubscriptionEntity) => Partial<SubscriptionEntity>),
    also?: (manager: EntityManager, version: number) => Promise<void>,
  ): Promise<SubscriptionEntity | undefined> {
    try {
      return await this.catalogue.change(async (manager, version) => {
        const before = await manager.findOneBy(SubscriptionEntity, { id, deletedAt: IsNull() });
        if (!before || !isToChange(before)) throw new NothingToChange();
        const changed = typeof changes === 'function' ? changes(before) : changes;
        await manager.update(SubscriptionEntity, { id }, { ...changed, version });
        await also?.(manager, version);
        return before;
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
const unreadable = () =>
  new ConflictProblem(
    'credentials-unreadable',
    'The credentials there are cannot be decrypted here: give authorization, tls and headers, each as a whole.',
  );
const stillDropping = () =>
  new ConflictProblem('subscription-dropping', 'What it held is still being dropped; resume it in a few seconds.');
