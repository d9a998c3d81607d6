import type { HeldReason } from '../ledger/delivery.js';
import type { Forecast } from './dry-run.service.js';

const heldTexts: Record<HeldReason, string> = {
  'endpoint-busy': 'more came than its endpoint takes, and what is held goes first',
  'endpoint-parked': 'the circuit breaker of its endpoint is open',
  paused: 'an operator paused its subscription',
  rate: 'its subscription has a rate, and gets it as soon as that allows',
  order: 'an earlier notification about the same object is not delivered yet',
};

/** The fate that a delivery would have, in a sentence; none where there would be no delivery. */
export function describeFate(
  { fate, heldFor, behind }: Pick<Forecast, 'fate' | 'heldFor' | 'behind'>,
  duplicateOf: string | null,
): string[] {
  switch (fate) {
    case 'none':
      return [];
    case 'sent':
      return ['It would be sent at once.'];
    case 'held':
      return [`It would be held: ${heldTexts[heldFor!]}.`];
    case 'in-line':
      return [`It would be held behind ${behind}, which is about the same object and is not delivered yet.`];
    case 'expired':
      return ['It would not be sent: it is older than its channel allows.'];
    case 'duplicate':
      return [`It would not be sent: by the rule of its channel it is a duplicate of ${duplicateOf}.`];
  }
}
