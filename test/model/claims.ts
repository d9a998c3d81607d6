import { demand, show, type DeliveryRow } from './delivery-rows.js';

/** The right to send, as the ledger gave it last. */
interface Claim {
  process: number;
  generation: number;
  /** Its process was told of it. */
  isHeard: boolean;
  /** Its process was told, for that generation, that it has none, while it had not heard of it. */
  isDenied: boolean;
  /** Its process has ended, or was frozen, since. */
  hasStoodStill: boolean;
}

interface ClaimRow {
  notification_id: string;
  subscription_id: string;
  generation: number;
}

/** Knows which processes were given the right to send, and which of them know that they made no use of it. */
export class Claims {
  private readonly byKey = new Map<string, Claim>();

  /** The ledger gave it, whether that is heard or not. */
  answered(process: number, statement: string, rows: readonly unknown[]): void {
    if (statement !== 'claim-sending') return;
    for (const { notification_id, subscription_id, generation } of rows as ClaimRow[])
      this.byKey.set(`${notification_id} ${subscription_id}`, {
        process,
        generation,
        isHeard: false,
        isDenied: false,
        hasStoodStill: false,
      });
  }

  /** A worker has the answer to its question. */
  heard(process: number, key: string, generation: number, isGiven: boolean): void {
    const claim = this.byKey.get(key);
    if (claim?.process !== process || claim.generation !== generation) return;
    if (isGiven) claim.isHeard = true;
    else claim.isDenied ||= !claim.isHeard;
  }

  /** It ended, or is frozen for a while: it may do nothing more of what it has claimed. */
  hasStoodStill(process: number): void {
    for (const claim of this.byKey.values()) if (claim.process === process) claim.hasStoodStill = true;
  }

  /** Checks a delivery that is being sent: its process, the only one that may call, does not leave it alone. */
  demandHolder(row: DeliveryRow): void {
    const claim = this.byKey.get(row.key);
    if (row.state !== 'sending' || claim?.generation !== row.generation) return;
    demand(claim.isHeard || !claim.isDenied, `${show(row)} is known to process ${claim.process}, which is to send it`);
  }

  /** Whether it may have ended without a call: its process ended, stood still, or had not heard of it. */
  mayBeLost(key: string): boolean {
    const claim = this.byKey.get(key);
    return claim !== undefined && (!claim.isHeard || claim.hasStoodStill);
  }
}
