import type { Room, Siblings } from '../supervision/siblings.js';
import type { Memory } from './most-in-memory.js';

/** Fewer are sent in a tenth of a second: they are there sooner than by way of another process. */
const muchInMemory = 512;
const askEveryMs = 20;
/** An answer says little about later; and a process that stands still soon gets nothing more. */
const answerCountsForMs = 100;

/** Room that a sibling had a moment ago. */
interface FoundRoom extends Room {
  sibling: number;
  foundAt: number;
}

/** Looks for room at siblings while this process has much in memory. */
export class SiblingRoom {
  private found: FoundRoom | undefined;
  private askedAt = -Infinity;

  constructor(
    private readonly siblings: Siblings,
    private readonly now: () => number,
  ) {}

  /** In answer to a question. */
  find(sibling: number, room: Room): void {
    this.found = { ...room, sibling, foundAt: this.now() };
  }

  /**
   * Does not wait: it asks, and an answer counts for what is accepted after it.
   * @param inMemory of this process
   * @returns the sibling that has room for `added`, which is taken
   */
  take(added: Memory, inMemory: Memory): { sibling: number; process: string } | undefined {
    if (inMemory.deliveries < muchInMemory) return undefined;
    const now = this.now();
    if (now - this.askedAt >= askEveryMs) {
      this.askedAt = now;
      this.siblings.askForRoom(inMemory.deliveries);
    }
    const { found } = this;
    if (!found || now - found.foundAt >= answerCountsForMs) return undefined;
    if (added.deliveries > found.deliveries || added.bytes > found.bytes) return undefined;
    found.deliveries -= added.deliveries;
    found.bytes -= added.bytes;
    return found;
  }
}
