import type { Situation, SubscriptionWithHeld } from '../../subscriptions/data.ts';

type Held = Pick<SubscriptionWithHeld, 'pausedAt' | 'held'>;
/** Why the ledger holds a delivery. In the document of the API these are keys of a record, whose type is any text. */
type HeldReason = 'endpoint-busy' | 'endpoint-parked' | 'paused' | 'rate' | 'order';

/** Whether its deliveries go out. Nobody is told that they do before it is known. */
export function flowOf({ held }: Held, situation: Situation | null | undefined): 'unknown' | 'held' | 'waits' | 'runs' {
  if (held.count > 0) return 'held';
  if (!situation) return 'unknown';
  return situation.waiting > 0 && situation.lastFailure ? 'waits' : 'runs';
}

/**
 * Why deliveries are held, as far as it is not the pause or the open circuit that is shown anyway. `goesOut`: it was
 * one of these, which is over.
 */
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

/**
 * The held deliveries, as the list of subscriptions counts them: `inLine` wait for an earlier one about the same
 * object, and are not among them.
 */
export function heldApart(
  { held: { count, byReason, oldestAt } }: Pick<Held, 'held'>,
  situation: Situation | null | undefined,
): { count: number; oldestAt: string | null; inLine: number } {
  const inLine = byReason['order'] ?? 0;
  return { count: count - inLine, oldestAt: inLine === 0 ? oldestAt : (situation?.oldestHeldAt ?? null), inLine };
}

/**
 * So far back the situation of a subscription counts; to the minute, so that a link stays the same while it is looked
 * at.
 */
export const weekBefore = (nowMs: number): string =>
  new Date(Math.floor(nowMs / 60_000 - 7 * 24 * 60) * 60_000).toISOString();
