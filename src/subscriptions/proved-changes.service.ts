import { Injectable } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import type { Application } from '../auth/application.js';
import { entityTagOf } from '../infra/http/if-match.js';
import { ChangedMeanwhileProblem, ConflictProblem } from '../infra/http/problem.js';
import { CallbackProof } from './callback-proof.service.js';
import { versionOf, type SubscriptionInput } from './subscription-changes.js';
import type { ListedSubscription } from './subscription-directory.service.js';

/** One change after the other may be made meanwhile, each of which has this one read again. */
const mostTries = 50;
/** A subscriber waits for up to two calls, of 30 s each, of each proof. */
const mostProofs = 2;

interface ProvedChange {
  /** The subscription as it was when the changes were found valid. */
  read: ListedSubscription;
  changes: Partial<SubscriptionInput>;
  caller: Application;
  readAgain: () => Promise<ListedSubscription>;
  /** Writes the changes where the subscription still is in the version of this tag. */
  write: (ifMatch: string) => Promise<ListedSubscription>;
}

/**
 * Changes of subscriptions whose callback may have to be called first. That takes up to a minute, in which the caller
 * may have left, and have asked for something else: so they are written only over what was read and proved. Otherwise
 * the older request would overwrite the newer one, two changes could leave a callback with an authorization that it was
 * never shown, and a subscription would be enabled whose callback answered 410 since.
 */
@Injectable()
export class ProvedChanges {
  constructor(private readonly proof: CallbackProof) {}

  /**
   * A change that needs no proof is made over whatever was changed meanwhile, and so is one with a proof, which is
   * repeated once, where that was not what a subscriber gives: its clients know nothing of what operators set.
   * @throws {ValidationProblem} with the answer or error of the callback
   * @throws {ConflictProblem} where the subscription was changed while its callback was called
   */
  async make({ read, changes, caller, readAgain, write }: ProvedChange): Promise<ListedSubscription> {
    for (let [subscription, tries, proofs] = [read, 1, 0]; ; tries++) {
      const isProof = await this.proof.proveChange(subscription, changes, caller);
      if (isProof) proofs++;
      try {
        return await write(entityTagOf(versionOf(subscription)));
      } catch (error) {
        if (!(error instanceof ChangedMeanwhileProblem)) throw error;
      }
      const now = await readAgain();
      if (tries >= mostTries || (isProof && (proofs >= mostProofs || isGivenOtherwise(subscription, now))))
        throw changedMeanwhile();
      subscription = now;
    }
  }
}

const given = ['callbackUrl', 'auth', 'credentials', 'channels', 'deliveryGuarantee', 'alertEmail'] as const;

const isGivenOtherwise = (one: ListedSubscription, other: ListedSubscription): boolean =>
  given.some((field) => !isDeepStrictEqual(one[field], other[field]));

const changedMeanwhile = () =>
  new ConflictProblem(
    'changed-while-proved',
    'It was changed by another request while its callback was called for this one, of which nothing was done.',
  );
