import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ConflictProblem, NotFoundProblem } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { noteSigningKeys } from './note-signing-keys.js';
import { addSigningKey, type AddedSigningKey, type NewSigningKey } from './add-signing-key.js';
import {
  endSigningKeyLater,
  eraseEndedSigningKeys,
  eraseSigningKey,
  findSigningKeys,
  hasEndedSigningKeys,
  type ShownSigningKey,
} from './signing-key-rows.js';
import { SubscriptionAllowance } from './subscription-allowance.service.js';

/** Keys of one subscription that were not rotated. */
const mostCurrent = 5;
/** Keys of one subscription that were rotated and still sign. With the others they bound the header: 1.4 kB at most. */
export const mostOld = 10;

export interface Rotation {
  /** Undefined: one is made. */
  secret?: string | undefined;
  graceSeconds: number;
}

/**
 * The keys that deliveries of a subscription are signed with. Each change is one of the subscription, so that it
 * reaches every process like any other. A rotated key goes on to sign until its grace is over, and is erased then.
 */
@Injectable()
export class SigningKeys {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly cipher: SecretCipher,
    private readonly allowance: SubscriptionAllowance,
  ) {}

  /** Those that sign at this moment, the newest first. */
  list(subscriptionId: string): Promise<ShownSigningKey[]> {
    return findSigningKeys(this.postgres.dataSource.manager, subscriptionId);
  }

  /**
   * Adds a key beside those that there are.
   * @throws {NotFoundProblem}
   * @throws {ValidationProblem} for a secret that cannot be used
   * @throws {ConflictProblem} when there are too many, or its owner would have more than an application may
   */
  create(subscriptionId: string, wish: NewSigningKey): Promise<AddedSigningKey> {
    return this.change('signing-key-created', subscriptionId, (manager, keys) => {
      if (keys.filter(isCurrent).length >= mostCurrent) throw tooManyCurrent();
      return addSigningKey(manager, this.cipher, subscriptionId, wish);
    });
  }

  /**
   * Puts a new key of the same scheme in the place of one, which goes on to sign for so many seconds.
   * @throws {NotFoundProblem}
   * @throws {ValidationProblem} for a secret that cannot be used
   * @throws {ConflictProblem} when the key was rotated before, or too many still sign that were, or its owner would
   *   have more than an application may
   */
  rotate(subscriptionId: string, keyId: string, { secret, graceSeconds }: Rotation): Promise<AddedSigningKey> {
    return this.change('signing-key-rotated', subscriptionId, async (manager, keys) => {
      const old = findOrFail(keys, keyId);
      if (!isCurrent(old)) throw rotatedBefore();
      if (graceSeconds === 0) await eraseSigningKey(manager, keyId);
      else if (keys.length - keys.filter(isCurrent).length >= mostOld) throw tooManyOld();
      else await endSigningKeyLater(manager, keyId, graceSeconds);
      return addSigningKey(manager, this.cipher, subscriptionId, { scheme: old.scheme, secret });
    });
  }

  /**
   * It does not sign from now on, also where its grace is not over.
   * @throws {NotFoundProblem}
   */
  async end(subscriptionId: string, keyId: string): Promise<void> {
    await this.change('signing-key-ended', subscriptionId, (manager, keys) =>
      eraseSigningKey(manager, findOrFail(keys, keyId).id),
    );
  }

  /**
   * Erases those whose grace is over. Until then they sign nothing, but lie in the database and in the memory of each
   * process.
   */
  async eraseEnded(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted && (await hasEndedSigningKeys(this.postgres.dataSource.manager))) {
      await this.catalogue.change(eraseEndedSigningKeys);
    }
  }

  /**
   * @param done in the audit log
   * @param work gets the keys as they are: no other change of the catalogue is under way
   */
  private change<T>(
    done: string,
    subscriptionId: string,
    work: (manager: EntityManager, keys: readonly ShownSigningKey[]) => Promise<T>,
  ): Promise<T> {
    return this.catalogue.change(async (manager, version) => {
      const [, found] = await manager.query<[unknown, number]>(
        'UPDATE subscription SET version = $1 WHERE id = $2 AND deleted_at IS NULL',
        [version, subscriptionId],
      );
      if (found === 0) throw new NotFoundProblem('There is no such abonnement.');
      const before = await findSigningKeys(manager, subscriptionId);
      const change = () => work(manager, before);
      const result = await this.allowance.within(queryOf(manager), change, () => subscriptionId);
      await noteSigningKeys(manager, done, subscriptionId, before, await findSigningKeys(manager, subscriptionId));
      return result;
    });
  }
}

function findOrFail(keys: readonly ShownSigningKey[], id: string): ShownSigningKey {
  const key = keys.find((one) => one.id === id);
  if (!key) throw new NotFoundProblem('There is no such signing key.');
  return key;
}

const isCurrent = ({ endsAt }: ShownSigningKey): boolean => endsAt === null;

const rotatedBefore = () =>
  new ConflictProblem('signing-key-rotated', 'This key was rotated before; rotate the one after it.');
const tooManyCurrent = () =>
  new ConflictProblem('too-many-signing-keys', `There are ${mostCurrent}, the most there may be; end one first.`);
const tooManyOld = () =>
  new ConflictProblem(
    'too-many-signing-keys',
    `${mostOld} keys that were rotated still sign, the most that may; end one first, or rotate without grace.`,
  );
