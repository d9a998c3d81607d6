import type { Capacity, Siblings } from '../supervision/siblings.js';
import type { Memory } from './most-in-memory.js';

const askEveryMs = 20;
/** A question without an answer is given up: the sibling, or the supervisor, is busy or gone. */
const answeredWithinMs = 1000;
/**
 * From the question on: an answer says little about later, and a process that stands still gets nothing more. Longer
 * than one with much to send takes to accept the next notification of a publisher that waits for each answer: with 100
 * ms it would find none.
 */
const countsForMs = 500;

interface Question {
  number: number;
  askedAt: number;
}

/** Capacity that a sibling had when it was asked. */
interface FoundCapacity extends Capacity {
  sibling: number;
  until: number;
}

/** Capacity of this process that a sibling may be about to use. */
interface Promised extends Memory {
  until: number;
}

/**
 * Looks for capacity at siblings while this process has much in memory, and promises them capacity while it has little.
 */
export class SiblingCapacity {
  private question: Question = { number: 0, askedAt: -Infinity };
  private isOpen = false;
  private found: FoundCapacity | undefined;
  /** By sibling: a later answer takes the place of the one before. */
  private readonly promised = new Map<number, Promised>();

  constructor(
    private readonly siblings: Siblings,
    private readonly sharedFrom: number,
    private readonly now: () => number,
  ) {}

  /**
   * Does not wait: it asks, and the answer counts for what is accepted after it.
   * @param inMemory of this process
   * @returns the sibling that has capacity for `added`, which is used up
   */
  use(added: Memory, inMemory: Memory): { sibling: number; process: string } | undefined {
    if (inMemory.deliveries < this.sharedFrom) return undefined;
    const now = this.now();
    this.ask(now, inMemory.deliveries);
    const { found } = this;
    if (!found || now >= found.until) return undefined;
    if (added.deliveries > found.deliveries || added.bytes > found.bytes) return undefined;
    found.deliveries -= added.deliveries;
    found.bytes -= added.bytes;
    return found;
  }

  /** One that comes after the next question was asked is ignored. */
  answered(question: number, sibling: number, capacity: Capacity | undefined): void {
    if (!this.isOpen || question !== this.question.number) return;
    this.isOpen = false;
    this.found = capacity && { ...capacity, sibling, until: this.question.askedAt + countsForMs };
  }

  /**
   * Half of the difference, so that both have as much to send, of what is not promised to another one.
   * @param deliveries that the sibling has in memory
   */
  promise(sibling: number, deliveries: number, inMemory: Memory, most: Memory): Memory | undefined {
    const now = this.now();
    this.promised.delete(sibling);
    const own = { ...inMemory };
    for (const [other, each] of this.promised) {
      if (now >= each.until) this.promised.delete(other);
      else {
        own.deliveries += each.deliveries;
        own.bytes += each.bytes;
      }
    }
    const capacity = {
      deliveries: Math.min(Math.floor((deliveries - own.deliveries) / 2), most.deliveries - own.deliveries),
      bytes: Math.floor((most.bytes - own.bytes) / 2),
    };
    if (capacity.deliveries <= 0 || capacity.bytes <= 0) return undefined;
    this.promised.set(sibling, { ...capacity, until: now + countsForMs });
    return capacity;
  }

  private ask(now: number, deliveries: number): void {
    if (now - this.question.askedAt < (this.isOpen ? answeredWithinMs : askEveryMs)) return;
    this.question = { number: this.question.number + 1, askedAt: now };
    this.isOpen = true;
    this.siblings.askForCapacity(this.question.number, deliveries);
  }
}
