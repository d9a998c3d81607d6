import type { Outcome } from '../ledger/settle.service.js';

type Final = 'delivered' | 'failed';

/** State, number, start, duration, status and error of the attempt; from the end, what is null is left out. */
export type SealedOutcome = [Final, number?, number?, number?, (number | null)?, (string | null)?];

/**
 * An outcome as it is sealed. There are as many seals as deliveries in six hours, and up to 44 characters Redis stores
 * a value in the memory of its header: a list instead of an object makes a third of its memory (docs/running.md).
 */
export function toSeal({ state, attempt }: Outcome & { state: Final }): SealedOutcome {
  if (!attempt) return [state];
  const { number, startedAt, durationMs, status, error } = attempt;
  const seal: SealedOutcome = [state, number, startedAt, Math.round(durationMs), status, error];
  return error === null ? (seal.slice(0, 5) as SealedOutcome) : seal;
}

/**
 * The ledger keeps whole milliseconds. The seal has nothing else that it would keep of the attempt: that is lost where
 * a worker died between seal and ledger.
 */
export function fromSeal([state, number, startedAt, durationMs, status = null, error = null]: SealedOutcome): Outcome {
  if (number === undefined || startedAt === undefined || durationMs === undefined) return { state, attempt: null };
  const attempt = { number, startedAt, durationMs, connectMs: null, firstByteMs: null, status, error, details: null };
  return { state, attempt };
}
