import { Injectable } from '@nestjs/common';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { DeadLetterGroups, type FoundGroups, type Sought } from './dead-letter-groups.service.js';

/**
 * An answer that took some time to find serves for so many times as long, so that all who look at it take a twentieth
 * of a core.
 */
const keptTimes = 20;
const longestKeptMs = 10_000;
const mostKept = 100;

export interface GroupsAsOf extends FoundGroups {
  asOf: Date;
}

interface Kept {
  answer: Promise<GroupsAsOf>;
  /** By the clock of `performance`; infinite while it is being found. */
  until: number;
}

/** Groups of dead letters, found once for all who ask for the same at the same time. */
@Injectable()
export class KeptGroups {
  private readonly kept = new Map<string, Kept>();

  constructor(
    private readonly groups: DeadLetterGroups,
    private readonly ledgerClock: LedgerClock,
  ) {}

  find(sought: Sought): Promise<GroupsAsOf> {
    const start = performance.now();
    // An answer may have thousands of groups, and whoever asks for the last day asks for another time each time.
    for (const [key, { until }] of this.kept) if (until <= start) this.kept.delete(key);
    const key = JSON.stringify(sought);
    const known = this.kept.get(key);
    if (known) return known.answer;
    const kept: Kept = { answer: this.findNow(sought), until: Infinity };
    kept.answer.then(
      () => {
        const end = performance.now();
        kept.until = end + Math.min(keptTimes * (end - start), longestKeptMs);
      },
      () => this.kept.delete(key),
    );
    if (this.kept.size >= mostKept) this.kept.delete(this.kept.keys().next().value!);
    this.kept.set(key, kept);
    return kept.answer;
  }

  private async findNow(sought: Sought): Promise<GroupsAsOf> {
    const asOf = new Date(this.ledgerClock.now());
    return { ...(await this.groups.find(sought)), asOf };
  }
}
