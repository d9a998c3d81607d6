import type { EntityManager } from 'typeorm';
import { noteOfOverride, writeOverrides } from '../retry-policy/retry-policy-changes.js';
import type { RetryPolicyOverride } from '../retry-policy/policy-input.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { replaceSigningKeys } from '../subscriptions/replace-signing-keys.js';
import { SubscriptionChanges } from '../subscriptions/subscription-changes.js';
import { SubscriptionWrites } from '../subscriptions/subscription-writes.js';
import type { SigningKeyChanges } from './want-signing-keys.js';

/**
 * Changes of some subscriptions, within one change of the catalogue: what they write is written together, except
 * signing keys, which are written for each subscription by itself.
 */
export class SubscriptionBatch {
  /** Its changes are written by `write`. */
  readonly changing: SubscriptionChanges;
  private readonly writes: SubscriptionWrites;
  private readonly overrides = new Map<string, RetryPolicyOverride | null>();

  private constructor(
    private readonly manager: EntityManager,
    private readonly version: number,
    private readonly cipher: SecretCipher,
  ) {
    this.writes = new SubscriptionWrites(manager, version);
    this.changing = new SubscriptionChanges(manager, version, cipher, undefined, this.writes);
  }

  /** @param ids of those it is about */
  static async of(
    manager: EntityManager,
    version: number,
    cipher: SecretCipher,
    ids: readonly string[],
  ): Promise<SubscriptionBatch> {
    const batch = new SubscriptionBatch(manager, version, cipher);
    await batch.writes.read(ids);
    return batch;
  }

  replaceOverride(id: string, before: RetryPolicyOverride | null, after: RetryPolicyOverride | null): void {
    this.overrides.set(id, after);
    this.writes.note(noteOfOverride(id, before, after));
  }

  async replaceSigningKeys(id: string, keys: SigningKeyChanges): Promise<void> {
    await this.write(); // the keys refer to the row of the subscription, and are noted behind what was done before
    await replaceSigningKeys(this.manager, this.version, this.cipher, id, keys);
  }

  async writeIfFull(): Promise<void> {
    if (this.writes.isFull) await this.write();
  }

  async write(): Promise<void> {
    await this.writes.write();
    await writeOverrides(this.manager, this.version, this.overrides);
    this.overrides.clear();
  }
}
