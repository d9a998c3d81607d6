import { createHash } from 'node:crypto';

/**
 *   counting ──▶ counted ──confirm──▶ erasing ──▶ ending ──▶ done
 *                   └── a day later ──▶ abandoned
 *
 * That of one notification begins as `erasing`.
 */
export const erasureStates = ['counting', 'counted', 'erasing', 'ending', 'done', 'abandoned'] as const;
export type ErasureState = (typeof erasureStates)[number];

export interface Erasure {
  id: string;
  /** Null: everything about a main object. */
  notificationId: string | null;
  /** Of the main object: what is left of it afterwards. */
  mainObjectHash: string | null;
  state: ErasureState;
  requestedAt: Date;
  confirmedAt: Date | null;
  doneAt: Date | null;
  /** The notification that the present walk has reached. */
  reached: string;
  /** Notifications with a body. */
  found: number;
  erased: number;
  /** Deliveries. */
  cancelled: number;
  /** Deliveries that a worker may still have in its memory, or be sending. */
  unsettled: number;
}

/** SHA-256 in hex: whoever knows the main object can tell that this was it, nobody else. */
export const hashOf = (mainObject: string): string => createHash('sha256').update(mainObject).digest('hex');
