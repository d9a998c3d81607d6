import type { Situation, SubscriptionWithHeld } from '../../subscriptions/data.ts';

type Held = Pick<SubscriptionWithHeld, 'pausedAt' | 'held'>;
/** Of the ledger; the document of the API has them as keys, and so as any text. */
type HeldReason = 'endpoint-busy' | 'endpoint-parked' | 'paused' | 'rate' | 'order';

/** Whether its deliveries go out. Nobody is told that they do before it is known. */
export function flowOf({ held }: Held, situation: Situation | null | undefined): 'unknown' | 'held' | 'waits' | 'runs' {
  if (held.count > 0) return 'held';
  if (!situation) return 'unknown';
  return situation.waiting > 0 && situation.lastFailure ? 'waits' : 'runs';
}

/** Why deliveries are held, as far as it is not the pause or the open circuit that is shown anyway. `goesOut`: it was one of these, which is over. */
export function heldBecause(
  { pausedAt, held }: Held,
  situation: Situation | null | undefined,
): (Exclude<HeldReason, 'paused'> | 'goesOut')[] {
  const reasons = (Object.keys(held.byReason) as HeldReason[]).flatMap((reason) => {
    if (reason === 'paused') return pausedAt === null ? ['goesOut' as const] : [];
    if (reason !== 'endpoint-parked' || !situation) return [reason];
    return situation.endpoint ? [] : ['goesOut' as const];
  });
  return [...new Set(reasons)];
}
