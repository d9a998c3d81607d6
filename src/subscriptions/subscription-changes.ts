import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { isAnyChange } from '../audit/audit-log.js';
import { givenFields } from '../infra/given-fields.js';
import { requireMatch } from '../infra/http/if-match.js';
import { ConflictProblem } from '../infra/http/problem.js';
import type { CredentialChanges } from '../credentials/credentials-io.js';
import { isDropping } from '../ledger/drop-held.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { addSigningKey } from './add-signing-key.js';
import { calledBy } from './called-url.js';
import { noteSigningKeys } from './note-signing-keys.js';
import { noteOfSubscription } from './note-subscription.js';
import { kindOf, requireAuth, secretsToStore } from './secrets-to-store.js';
import { SubscriptionWrites } from './subscription-writes.js';
import { SubscriptionEntity } from './subscription.entity.js';
import type { DeliveryGuarantee, Subscription } from './subscription.js';

/** The fields that a subscriber gives. */
export type SubscriptionInput = Pick<Subscription, 'callbackUrl' | 'auth' | 'channels'> & {
  /** Undefined: as it was; so of the next two. */
  deliveryGuarantee?: DeliveryGuarantee | null | undefined;
  credentials?: CredentialChanges | undefined;
  alertEmail?: string | null | undefined;
};
/** The fields that an operator may set. */
export type SubscriptionSettings = Pick<
  Subscription,
  'deliveryGuarantee' | 'timeoutSeconds' | 'maxConcurrency' | 'ratePerSecond' | 'ordering' | 'alertEmail'
>;

/** Undefined, where there is one of these: it does not exist, was not to be changed, or is already as it was to be. */
export interface ChangedSubscription {
  before: SubscriptionEntity;
  after: SubscriptionEntity;
}

type Awaitable<T> = T | Promise<T>;
type Marks = Pick<Subscription, 'disabledAt' | 'pausedAt'>;
const always = () => true;
export const isDisabled = ({ disabledAt }: Marks): boolean => disabledAt !== null;
const isEnabled = ({ disabledAt }: Marks): boolean => disabledAt === null;
export const isPaused = ({ pausedAt }: Marks): boolean => pausedAt !== null;
const isRunning = ({ pausedAt }: Marks): boolean => pausedAt === null;

/** v4, not v7: clients find the base of a resource URL with a pattern that fits v4 only (docs/decisions/0011). */
export const newSubscriptionId = (): string => randomUUID();

/**
 * All that can be done to subscriptions, within one change of the catalogue that may be about several of them. Each is
 * noted in the audit log. Each method that changes one throws a `ChangedMeanwhileProblem` when its version is none of
 * `ifMatch`.
 */
export class SubscriptionChanges {
  private readonly writes: SubscriptionWrites;

  constructor(
    private readonly manager: EntityManager,
    private readonly version: number,
    private readonly cipher: SecretCipher,
    /** Of the subscription that is changed; undefined: whatever its version is. */
    private readonly ifMatch?: string,
    /** Undefined: each change is written at once. Otherwise they are written together, when its owner says so. */
    private readonly together?: SubscriptionWrites,
  ) {
    this.writes = together ?? new SubscriptionWrites(manager, version);
  }

  /**
   * @param isSigned whether it gets a signing key
   * @param id undefined: a new one
   * @param predecessor a deleted one, whose id it has: nothing else is taken over from it
   * @returns it, and the secret of its signing key, which is shown this once
   */
  async create(
    ownerClientId: string,
    input: SubscriptionInput & Partial<SubscriptionSettings>,
    {
      isSigned = false,
      predecessor,
      id = predecessor?.id ?? newSubscriptionId(),
    }: { isSigned?: boolean; predecessor?: SubscriptionEntity | undefined; id?: string } = {},
  ): Promise<{ after: SubscriptionEntity; secret: string | undefined }> {
    const { manager, cipher, version } = this;
    const { auth, credentials } = secretsToStore(cipher, id, input);
    const after = manager.create(SubscriptionEntity, {
      id,
      ownerClientId,
      callbackUrl: input.callbackUrl,
      auth,
      credentials: credentials ?? null,
      channels: input.channels,
      deliveryGuarantee: input.deliveryGuarantee ?? null,
      timeoutSeconds: input.timeoutSeconds ?? null,
      maxConcurrency: input.maxConcurrency ?? null,
      ratePerSecond: input.ratePerSecond ?? null,
      ordering: input.ordering ?? 'none',
      alertEmail: input.alertEmail ?? null,
      disabledAt: null,
      pausedAt: null,
      deletedAt: null,
      version,
    });
    if (predecessor) await this.succeed(predecessor, after);
    else this.writes.create(after);
    this.writes.note(noteOfSubscription(cipher, 'created', null, after));
    await this.finish();
    if (!isSigned) return { after, secret: undefined };
    await this.writes.write(); // its key refers to it
    const added = await addSigningKey(manager, cipher, id, { scheme: 'v1' });
    await noteSigningKeys(manager, 'signing-key-created', id, [], [added.key]);
    return { after, secret: added.secret };
  }

  /**
   * Deliveries of the deleted one that have not been cancelled yet go on: it cannot be told which were before, and
   * which after.
   */
  private async succeed(predecessor: SubscriptionEntity, successor: SubscriptionEntity): Promise<void> {
    const { writes } = this;
    const { id, ordering } = predecessor;
    successor.createdAt = await writes.now();
    writes.change(successor, successor);
    writes.goOn(id);
    if (successor.ordering === 'per-object') writes.keepOrder(id);
    else if (ordering === 'per-object') writes.endOrder(id);
    writes.lookNow(id);
    this.noteAddress(predecessor, successor);
  }

  /**
   * The endpoint at another address may be parked for longer than its own deliveries could have been tried there. With
   * another TLS identity it is another endpoint, too. A URL that is only spelt in another way is the same one.
   */
  private noteAddress({ callbackUrl, credentials }: SubscriptionEntity, after: SubscriptionEntity): void {
    if (calledBy(after.callbackUrl).url !== calledBy(callbackUrl).url) this.writes.resume(after.id);
    else if (after.credentials !== credentials && !after.deletedAt) this.writes.lookNow(after.id);
  }

  /** An undefined field stays as it is, and so does what an operator set. A disabled subscription is enabled. */
  update(id: string, changes: Partial<SubscriptionInput>): Promise<ChangedSubscription | undefined> {
    const toChange = (entity: SubscriptionEntity) => ({
      ...changes,
      ...secretsToStore(this.cipher, id, changes, entity.credentials),
      disabledAt: null,
    });
    return this.change('changed', id, always, toChange, () => this.writes.goOn(id));
  }

  /**
   * An undefined field stays as it is. With a `callbackUrl`, which was proved anew, a disabled subscription is enabled.
   */
  set(
    id: string,
    settings: Partial<SubscriptionSettings & Pick<SubscriptionEntity, 'ownerClientId' | 'channels' | 'callbackUrl'>>,
  ): Promise<ChangedSubscription | undefined> {
    const isProved = settings.callbackUrl !== undefined;
    return this.change('changed', id, always, { ...settings, ...(isProved && { disabledAt: null }) }, () => {
      if (isProved) this.writes.goOn(id);
      if (settings.ordering === 'none') this.writes.endOrder(id);
      else if (settings.ordering) this.writes.keepOrder(id);
      // Deliveries that are held for the rate it had go on at the one that it has now.
      if (settings.ratePerSecond !== undefined) this.writes.lookNow(id);
    });
  }

  /**
   * An undefined part stays as it is.
   * @throws {ConflictProblem} when a part is to stay that cannot be decrypted here
   * @throws {ValidationProblem} when its calls would be without authorization, and nobody said so
   */
  setCredentials(id: string, credentials: CredentialChanges): Promise<ChangedSubscription | undefined> {
    return this.change('credentials-changed', id, always, ({ auth, credentials: stored }) => {
      const secrets = secretsToStore(this.cipher, id, { credentials }, stored);
      requireAuth({ credentials }, { auth, kind: kindOf(this.cipher, id, stored) }, 'authorization.auth');
      return secrets;
    });
  }

  enable(id: string): Promise<ChangedSubscription | undefined> {
    return this.change('enabled', id, isDisabled, { disabledAt: null }, () => this.writes.goOn(id));
  }

  disable(id: string, ifVersion?: number): Promise<ChangedSubscription | undefined> {
    const isToDisable = (entity: SubscriptionEntity): boolean =>
      isEnabled(entity) && (ifVersion === undefined || Number(entity.version) === ifVersion);
    return this.change(
      'disabled',
      id,
      isToDisable,
      async () => ({ disabledAt: await this.writes.now() }),
      () => this.writes.end(id, 'failed'),
    );
  }

  pause(id: string): Promise<ChangedSubscription | undefined> {
    return this.change(
      'paused',
      id,
      isRunning,
      async () => ({ pausedAt: await this.writes.now() }),
      () => this.writes.lookNow(id),
    );
  }

  /** @throws {ConflictProblem} while what it held is being dropped */
  resume(id: string): Promise<ChangedSubscription | undefined> {
    return this.change('resumed', id, isPaused, { pausedAt: null }, async () => {
      if (await isDropping(this.manager, id)) throw stillDropping();
      this.writes.resume(id);
    });
  }

  /** Its secrets are not kept. */
  remove(id: string): Promise<ChangedSubscription | undefined> {
    const changes = async () => ({ deletedAt: await this.writes.now(), auth: '', credentials: null, alertEmail: null });
    return this.change('deleted', id, always, changes, () => {
      this.writes.end(id, 'cancelled');
      this.writes.eraseSigningKeys(id);
    });
  }

  /**
   * @param done in the audit log
   * @param isToChange whether it is changed, as it is now: no other change of the catalogue is under way
   * @param also runs after the change
   */
  private async change(
    done: string,
    id: string,
    isToChange: (subscription: SubscriptionEntity) => boolean,
    changes: Partial<SubscriptionEntity> | ((before: SubscriptionEntity) => Awaitable<Partial<SubscriptionEntity>>),
    also?: () => Awaitable<void>,
  ): Promise<ChangedSubscription | undefined> {
    const before = await this.writes.find(id);
    if (!before) return undefined;
    requireMatch(this.ifMatch, versionOf(before));
    if (!isToChange(before)) return undefined;
    const changed = typeof changes === 'function' ? await changes(before) : changes;
    const given = givenFields(changed);
    const after: SubscriptionEntity = { ...before, ...given, version: this.version };
    const note = noteOfSubscription(this.cipher, done, before, after);
    if (!isAnyChange(note)) return undefined;
    this.writes.change(after, given);
    await also?.();
    this.noteAddress(before, after);
    this.writes.note(note);
    await this.finish();
    return { before, after };
  }

  private async finish(): Promise<void> {
    if (this.together) return;
    await this.writes.write();
    // The next change may find what others within this one have written.
    this.writes.forget();
  }
}

/** By which it is known whether a subscription was changed, its secrets included. */
export const versionOf = ({ id, version }: Pick<SubscriptionEntity, 'id' | 'version'>) => ({
  id,
  version: Number(version),
});

const stillDropping = () =>
  new ConflictProblem(
    'subscription-dropping',
    'Its held deliveries are still being dropped; resume it in a few seconds.',
  );
