import type { InOrder } from '../ledger/line-up.js';
import type { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { inOrderOf } from './in-order.js';
import type { Publication, Terms } from './publication.js';

/** By the catalogue in memory; outdated as soon as that reaches another version. */
interface Matched {
  /** The subscriptions that get it. */
  subscriptionIds: string[];
  /** Null: none of them keeps order. */
  inOrder: InOrder | null;
  terms: Terms;
}

/**
 * Hot path.
 * @throws {PermissionProblem} its publisher may not publish it any more
 * @throws {ThrottledProblem}
 * @throws {UnavailableProblem} that cannot be checked here
 * @throws {ValidationProblem} its channel was removed
 */
export function matchNow(publication: Publication, subscriptions: SubscriptionDirectory): Matched {
  const refusal = publication.refusalNow();
  if (refusal) throw refusal;
  const subscriptionIds = subscriptions.match(publication.channel, publication.characteristics);
  const inOrder = inOrderOf(subscriptions, subscriptionIds, publication.hoofdObject);
  return { subscriptionIds, inOrder, terms: publication.termsNow?.() ?? publication.terms };
}
