import type { Accepted, Decision } from '../ledger/acceptance.js';
import { longestInlineBody, type HandedOut } from '../ledger/delivery.js';

/**
 * Of an accepted notification, the deliveries that go to a worker at once: those that are not held, and not in line.
 */
export function deliveriesForNow(accepted: Accepted, decision: Decision): HandedOut[] {
  if (decision.kind !== 'accepted' || decision.handedTo !== 'worker') return [];
  const { id, body, subscriptionIds, heldFor, expiresAt } = accepted;
  const traceParent = accepted.traceParent ?? undefined;
  const { inLine } = decision;
  const bytes = Buffer.from(body);
  const inlineBody = bytes.length <= longestInlineBody ? bytes : null;
  const now =
    heldFor.size === 0 && !inLine
      ? subscriptionIds
      : subscriptionIds.filter((each) => !heldFor.has(each) && !inLine?.has(each));
  return now.map((subscriptionId) => ({
    notificationId: id,
    subscriptionId,
    generation: 1,
    attempts: 0,
    failures: 0,
    replays: 0,
    isReleased: false,
    isProbe: false,
    expiresAt,
    body: inlineBody,
    traceParent,
  }));
}
