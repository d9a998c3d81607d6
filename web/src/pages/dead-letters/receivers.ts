import type { Group } from '../../selection/selection.ts';
import type { DeadLetterGroup } from './use-dead-letters.ts';

/** The groups of one subscription. */
export interface Receiver extends Pick<DeadLetterGroup, 'subscriptionId' | 'subscription' | 'callbackUrl' | 'owner'> {
  groups: DeadLetterGroup[];
  count: number;
  isAtLeast: boolean;
}

export const keyOfGroup = ({ subscriptionId, state, errorClass }: DeadLetterGroup): Group => ({
  subscriptionId,
  state,
  errorClass,
});

/** In the order of the groups, by which those with most come first; one that has several is where its largest is. */
export function receiversOf(groups: readonly DeadLetterGroup[]): Receiver[] {
  const found = new Map<string, Receiver>();
  for (const group of groups) {
    const { subscriptionId, subscription, callbackUrl, owner, count, isAtLeast } = group;
    const known = found.get(subscriptionId);
    if (known) {
      known.groups.push(group);
      known.count += count;
      known.isAtLeast ||= isAtLeast;
    } else
      found.set(subscriptionId, {
        subscriptionId,
        subscription,
        callbackUrl,
        owner,
        groups: [group],
        count,
        isAtLeast,
      });
  }
  return [...found.values()];
}
