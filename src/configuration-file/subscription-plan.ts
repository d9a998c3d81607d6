import { isDeepStrictEqual } from 'node:util';
import { scopes } from '../auth/scopes.js';
import type { Settings } from '../config/settings.js';
import { changedParts, noParts, partsOf, type CredentialParts } from '../credentials/credentials.js';
import type { CredentialChanges } from '../credentials/credentials-io.js';
import { isDropping } from '../ledger/drop-held.js';
import type { OperationalEvent } from '../operational-events/operational-events.service.js';
import type { RetryPolicyOverride } from '../retry-policy/policy-input.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { checkTimeout } from '../subscriptions/call-timeout.js';
import { refusalOfNames } from '../subscriptions/read-abonnement.js';
import { namesThatMeanTheSame } from '../subscriptions/subscription-input.js';
import type { StoredSigningKey } from '../subscriptions/replace-signing-keys.js';
import { secretsToStore } from '../subscriptions/secrets-to-store.js';
import type { SubscriptionEntity } from '../subscriptions/subscription.entity.js';
import type { Part } from '../subscriptions/shares.js';
import { partOf } from '../subscriptions/subscription-allowance.service.js';
import { mostEntries } from '../subscriptions/subscription-limits.js';
import { authPlace, credentialsPlace, type SubscribedChannel } from '../subscriptions/subscription.js';
import type { ConfiguredSubscription } from './configuration-schema.js';
import { fieldsThatDiffer, type FieldChange } from './fields-that-differ.js';
import type { PlannedChange, Planning } from './planning.js';
import type { Entry } from './read-configuration.js';
import { showCredentials } from './show-credentials.js';
import type { SubscriptionBatch } from './subscription-batch.js';
import { fieldsAfter, fieldsOfNew, settings, showFields, type Fields } from './subscription-fields.js';
import { wantCredentials } from './want-credentials.js';
import { wantSigningKeys, type SigningKeyChanges } from './want-signing-keys.js';

export interface StoredSubscription {
  entity: SubscriptionEntity;
  signingKeys: readonly StoredSigningKey[];
  override: RetryPolicyOverride | null;
}

/** A change of a subscription, and how it is made together with others. */
export interface SubscriptionStep {
  change: PlannedChange;
  /** @returns the events to report once that is committed */
  carryOut: (batch: SubscriptionBatch) => Promise<OperationalEvent[]>;
}

/** Undefined where it is deleted. */
export const living = (stored: StoredSubscription | undefined): StoredSubscription | undefined =>
  stored?.entity.deletedAt === null ? stored : undefined;

/** Undefined where it cannot be decrypted here. */
interface Secrets {
  auth: string | undefined;
  parts: CredentialParts | undefined;
}

/** How one subscription gets from what it is to what the configuration wants. */
export class SubscriptionPlan {
  private readonly name: string;
  private readonly wanted: ConfiguredSubscription;
  private readonly stored: StoredSubscription | undefined;
  /** Of the share of its owner, after the step; undefined where there is none. */
  part: Part | undefined;

  constructor(
    private readonly planning: Planning,
    { name, wanted }: Entry<ConfiguredSubscription>,
    private readonly found: StoredSubscription | undefined,
    private readonly cipher: SecretCipher,
    private readonly settings: Settings,
  ) {
    this.name = name;
    this.wanted = wanted;
    this.stored = living(found);
  }

  /**
   * @param full client ids of applications that have no room for channels that the file no longer names
   * @returns undefined: something is wrong; the planning knows what and why
   */
  async step(full: ReadonlySet<string>): Promise<SubscriptionStep | 'unchanged' | undefined> {
    const { planning, wanted, stored } = this;
    const troublesBefore = planning.problems.length;
    const before = stored ? stored.entity : this.newFields();
    const after = fieldsAfter(before, wanted);
    const isPaused = await this.isPausedAfter();
    const isResumed = stored !== undefined && stored.entity.pausedAt !== null && !isPaused;
    // Otherwise it would get what neither the file nor the state before gives it.
    const isSame = before.callbackUrl === after.callbackUrl && before.ownerClientId === after.ownerClientId;
    this.checkFields(before, after, isSame && !isResumed && !full.has(after.ownerClientId));
    const secrets = this.readSecrets();
    const credentials = this.credentialsWanted(secrets);
    const keys = wantSigningKeys(planning, this.name, wanted.signingKeys, stored?.signingKeys ?? []);
    const override = this.overrideAfter();
    if (planning.problems.length > troublesBefore || !credentials) return undefined;

    const shownBefore = stored && {
      ...showFields(before, stored.entity.pausedAt !== null, stored.override),
      credentials: showCredentials(secrets.parts ?? noParts, secrets.auth),
    };
    const partsAfter = changedParts(secrets.parts ?? noParts, credentials);
    const credentialsAfter = showCredentials(partsAfter, credentials.auth ?? secrets.auth);
    const isEnabling = Boolean(stored?.entity.disabledAt) && before.callbackUrl !== after.callbackUrl;
    const fields: FieldChange[] = [
      ...fieldsThatDiffer(shownBefore ?? null, showFields(after, isPaused, override)),
      ...fieldsThatDiffer(shownBefore?.credentials ?? null, credentialsAfter),
      ...signingKeyFields(keys),
      ...(isEnabling ? [{ name: 'isDisabled', before: true, after: false }] : []),
    ];
    if (stored && fields.length === 0) return 'unchanged';
    const [section, key] = ['subscriptions', wanted.id] as const;
    if (!stored) {
      this.part = this.partAfter(after, { auth: '', credentials }, keys);
      const notes = this.notesOfOwner(after, []);
      const change: PlannedChange = { section, action: 'create', key, about: null, fields, notes };
      return { change, carryOut: this.creation(after, credentials, isPaused, override, keys) };
    }
    const isCredentialsNew = fields.some(({ name }) => /^(authorization|tls|headers)\./.test(name));
    this.part = this.partAfter(after, isCredentialsNew ? { credentials } : {}, keys);
    const notes =
      before.ownerClientId === after.ownerClientId ? [] : this.notesOfOwner(after, keysThatStay(stored, keys));
    const change: PlannedChange = { section, action: 'change', key, about: before.callbackUrl, fields, notes };
    return {
      change,
      carryOut: this.change(stored, after, isCredentialsNew ? credentials : {}, isPaused, override, keys),
    };
  }

  private async isPausedAfter(): Promise<boolean> {
    const { planning, name, wanted, stored } = this;
    const isPaused = stored !== undefined && stored.entity.pausedAt !== null;
    if (!isPaused || wanted.isPaused !== false) return wanted.isPaused ?? isPaused;
    if (!(await isDropping(planning.manager, wanted.id))) return false;
    const refusal = { name: `${name}.isPaused`, code: 'subscription-dropping' };
    const reason = 'Its held deliveries are still being dropped; resume it in a few seconds.';
    // Only a dispatcher ends that, and none gets past a start that is refused.
    if (planning.options.postponed)
      planning.options.postponed.push({ ...refusal, reason: `It stays paused. ${reason}` });
    else planning.problems.push({ ...refusal, reason });
    return true;
  }

  private partAfter(
    after: Fields,
    secrets: { auth?: string; credentials?: CredentialChanges },
    { added, left }: SigningKeyChanges,
  ): Part | undefined {
    const before = this.stored?.entity ?? { auth: '', credentials: null };
    const { auth = before.auth, credentials = before.credentials } = secretsToStore(
      this.cipher,
      this.wanted.id,
      secrets,
      before.credentials,
    );
    // Those in whose places others come go on to sign for a day.
    const ended = added.length === 0 ? left.length : 0;
    const signingKeys = (this.stored?.signingKeys.length ?? 0) + added.length - ended;
    return partOf({ ...after, auth, credentials, signingKeys, deletedAt: null });
  }

  private newFields(): Fields {
    const { planning, name, wanted } = this;
    const need = (field: string, reason: string) => planning.refuse(`${name}.${field}`, 'required', reason);
    if (wanted.callbackUrl === undefined) need('callbackUrl', 'A new subscription needs its callback.');
    if (wanted.authorization === undefined) need('authorization', 'A new subscription needs its authorization.');
    if (wanted.authorization?.kind === 'verbatim' && wanted.authorization.auth === undefined)
      need('authorization.auth', 'A new subscription needs its authorization.');
    return fieldsOfNew(this.settings.SUPERUSER_CLIENT_ID);
  }

  /**
   * Only what is to change: a start must not fail for what was accepted when other rules were in force.
   * @param mayKeep whether it may go on to get what only `before` names, where channels are left to publishers
   */
  private checkFields(before: Fields, after: Fields, mayKeep: boolean): void {
    const { planning, name, wanted } = this;
    const differs = (field: keyof Fields) =>
      wanted[field] !== undefined && !isDeepStrictEqual(before[field], after[field]);
    this.checkOwner(differs('ownerClientId'));
    const { timeoutSeconds } = after;
    if (differs('timeoutSeconds') && timeoutSeconds !== null)
      planning.check(name, () => checkTimeout(timeoutSeconds, this.settings));
    if (differs('channels')) after.channels = this.channelsNow(before, after, mayKeep);
  }

  private checkOwner(isAnother: boolean): void {
    const { planning, name, wanted } = this;
    const { ownerClientId } = wanted;
    if (ownerClientId === undefined || planning.isUnreadable('applications')) return;
    const refuse = (reason: string) => planning.refuse(`${name}.ownerClientId`, 'invalid', reason);
    if (planning.pruned.has(ownerClientId))
      refuse('Pruning would remove this application: name it under applications, or name another owner here.');
    else if (isAnother && !planning.clientIds.has(ownerClientId))
      refuse('There is no application with this client id.');
  }

  /** Those of `after`, but for the ones that are left to publishers, which are noted. */
  private channelsNow(before: Fields, after: Fields, mayKeep: boolean): Fields['channels'] {
    const { planning, name } = this;
    const there = after.channels.filter(({ channel }) => planning.channels.has(channel) || !this.waitsForChannels());
    const kept = mayKeep && there.length < after.channels.length ? keptBeside(there, before, after) : [];
    for (const [index, entry] of after.channels.entries()) {
      const refusal = refusalOfNames(entry, (channel) => planning.channels.get(channel));
      const place = `${name}.channels.${index}`;
      if (refusal?.of === 'channel' && this.waitsForChannels()) {
        const keeps = kept.length > 0 ? ', and keeps those it has that the file no longer names' : '';
        const reason = `There is no channel ${entry.channel} yet. The subscription goes without it${keeps}, until a publisher has made the channel and the file is applied again, by the next start or heraut apply: nothing that is published there before comes to it.`;
        planning.options.postponed!.push({ name: `${place}.channel`, code: refusal.code, reason });
      } else if (refusal && !planning.isUnreadable('channels'))
        planning.refuse(`${place}.${refusal.of}`, refusal.code, upperFirst(refusal.reason));
      for (const filter of namesThatMeanTheSame(entry))
        planning.refuse(`${place}.filters.${filter}`, 'unique', 'Another name here means the same.');
    }
    return [...there, ...kept];
  }

  /**
   * Whether channels that are not there are left to publishers: at a start, of a file that has none itself. They make
   * theirs by the API, which answers only after the start.
   */
  private waitsForChannels(): boolean {
    const { options, configuration } = this.planning;
    return options.postponed !== undefined && configuration.channels === undefined;
  }

  /** Things to know for the operator who gives it to an application. @param keys that another owner had */
  private notesOfOwner({ ownerClientId }: Fields, keys: readonly StoredSigningKey[]): string[] {
    const { stored, planning } = this;
    const notes: string[] = [];
    if (keys.length > 0 && stored!.entity.ownerClientId !== this.settings.SUPERUSER_CLIENT_ID)
      notes.push(
        `${stored!.entity.ownerClientId}, its owner so far, may know the signing keys that stay: name others, or have ${ownerClientId} rotate them.`,
      );
    if (!planning.consumers.has(ownerClientId))
      notes.push(
        `${ownerClientId} has not the scope ${scopes.consume}: it cannot read, change or delete this subscription by the Notificaties API.`,
      );
    return notes;
  }

  private readSecrets(): Secrets {
    if (!this.stored) return { auth: '', parts: noParts };
    const { id, auth, credentials } = this.stored.entity;
    return {
      auth: this.cipher.decryptIfPossible(auth, authPlace(id)),
      parts: credentials === null ? noParts : parsed(this.cipher.decryptIfPossible(credentials, credentialsPlace(id))),
    };
  }

  private credentialsWanted({ parts, auth }: Secrets): CredentialChanges | undefined {
    const { authorization, tls, headers } = this.wanted;
    const given = [authorization, tls, headers].filter((part) => part !== undefined).length;
    if (!parts && given > 0 && given < 3) {
      const reason =
        'The credentials there are cannot be decrypted here: give authorization, tls and headers, all of them.';
      this.planning.refuse(this.name, 'credentials-unreadable', reason);
      return undefined;
    }
    return wantCredentials(this.planning, this.name, { authorization, tls, headers }, parts, auth);
  }

  /** Null: it follows the general policy in everything. */
  private overrideAfter(): RetryPolicyOverride | null {
    const { retryPolicy } = this.wanted;
    if (retryPolicy === undefined) return this.stored?.override ?? null;
    return retryPolicy && Object.keys(retryPolicy).length > 0 ? retryPolicy : null;
  }

  private creation(
    { callbackUrl, ownerClientId, ...fields }: Fields,
    credentials: CredentialChanges,
    isPaused: boolean,
    override: RetryPolicyOverride | null,
    keys: SigningKeyChanges,
  ): SubscriptionStep['carryOut'] {
    const { id } = this.wanted;
    const predecessor = this.found;
    return async (batch) => {
      const { changing } = batch;
      const input = { ...fields, callbackUrl, auth: '', credentials };
      await changing.create(ownerClientId, input, { id, predecessor: predecessor?.entity });
      if (isPaused) await changing.pause(id);
      // The one that a deleted subscription of this id had would count again.
      if (override || predecessor?.override) batch.replaceOverride(id, predecessor?.override ?? null, override);
      if (keys.added.length > 0) await batch.replaceSigningKeys(id, keys);
      return isPaused ? [{ event: 'subscription.paused', subscriptionId: id }] : [];
    };
  }

  private change(
    { entity, override: overrideBefore }: StoredSubscription,
    after: Fields,
    credentials: CredentialChanges,
    isPaused: boolean,
    override: RetryPolicyOverride | null,
    keys: SigningKeyChanges,
  ): SubscriptionStep['carryOut'] {
    const { id, callbackUrl, disabledAt, pausedAt } = entity;
    const differing = Object.fromEntries(
      settings.filter((name) => !isDeepStrictEqual(entity[name], after[name])).map((name) => [name, after[name]]),
    ) as Partial<Fields>;
    return async (batch) => {
      const { changing } = batch;
      const events: OperationalEvent[] = [];
      const report = (event: 'subscription.enabled' | 'subscription.paused' | 'subscription.resumed') =>
        events.push({ event, subscriptionId: id });
      if (callbackUrl !== after.callbackUrl) {
        await changing.update(id, { callbackUrl: after.callbackUrl });
        if (disabledAt) report('subscription.enabled');
      }
      if (Object.keys(differing).length > 0) await changing.set(id, differing);
      if (Object.keys(credentials).length > 0) await changing.setCredentials(id, credentials);
      if (isPaused && !pausedAt && (await changing.pause(id))) report('subscription.paused');
      if (!isPaused && pausedAt && (await changing.resume(id))) report('subscription.resumed');
      if (!isDeepStrictEqual(override, overrideBefore)) batch.replaceOverride(id, overrideBefore, override);
      if (keys.added.length > 0 || keys.left.length > 0) await batch.replaceSigningKeys(id, keys);
      return events;
    };
  }
}

/** Nothing that it gets now is taken away for a channel that is not there to take its place. */
function keptBeside(there: readonly SubscribedChannel[], before: Fields, after: Fields): SubscribedChannel[] {
  const named = new Set(after.channels.map(({ channel }) => channel));
  const kept = before.channels.filter(({ channel }) => !named.has(channel));
  return there.length + kept.length > mostEntries ? [] : kept;
}

/** But for those that were rotated, which end by themselves. */
const keysThatStay = ({ signingKeys }: StoredSubscription, { left }: SigningKeyChanges): StoredSigningKey[] =>
  signingKeys.filter(({ id, isRotated }) => !isRotated && !left.includes(id));

const parsed = (text: string | undefined): CredentialParts | undefined =>
  text === undefined ? undefined : partsOf(text);

function signingKeyFields({ added, left }: SigningKeyChanges): FieldChange[] {
  if (added.length === 0 && left.length === 0) return [];
  return [{ name: 'signingKeys', secret: left.length === 0 ? 'set' : added.length === 0 ? 'removed' : 'changed' }];
}

const upperFirst = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
