import type { Publication, Published } from '../../src/publishing/publication.js';
import type { Fate } from './gates.js';
import type { VirtualTime } from '../support/virtual-time.js';

/** A process that waits for the ledger for less long than this has no reason to refuse. */
const patienceMs = 1000;

interface Publisher {
  readonly number: number;
  readonly state: string;
  publish(publication: Publication): Promise<Published>;
}

interface Made {
  process: Publisher;
  begunMs: number;
  /** Events in the order in which they happened. */
  begun: number;
  accepted: number | undefined;
  hasEnded: boolean;
  /** Others may come before it until it is due. */
  isScheduled: boolean;
  /** Subscriptions that were gone before. */
  removed: ReadonlySet<string>;
  /** A step of its process failed, or seemed to. */
  isUnlucky: boolean;
}

/** One that was answered well. */
export interface AcceptedPublication {
  id: string;
  deliveries: number;
  /** Subscriptions that were gone before it was made, and get nothing of it. */
  removed: ReadonlySet<string>;
}

/** The publications in their order, and the answers to their publishers. */
export class Publications {
  private readonly made: Made[] = [];
  private readonly byId = new Map<string, Made>();
  private events = 0;
  readonly accepted: AcceptedPublication[] = [];
  /** Faults that nothing excuses. */
  readonly wrong: string[] = [];

  constructor(private readonly time: VirtualTime) {}

  get count(): number {
    return this.made.length;
  }

  /** Its number is its content: by that, a call says which one it is of. */
  make(process: Publisher, publication: Omit<Publication, 'body'>, removed: ReadonlySet<string>): void {
    const nr = this.made.length;
    const made: Made = {
      process,
      begunMs: this.time.now(),
      begun: ++this.events,
      accepted: undefined,
      hasEnded: false,
      isScheduled: publication.terms.notBefore !== null && !publication.terms.keepsPlace,
      removed: new Set(removed),
      isUnlucky: false,
    };
    this.made.push(made);
    process.publish({ ...publication, body: JSON.stringify({ nr }) }).then(
      (published) => this.answered(nr, made, published),
      (error: unknown) => this.refused(nr, made, error),
    );
  }

  static numberOf(body: Buffer): number {
    return (JSON.parse(body.toString()) as { nr: number }).nr;
  }

  /** A step of a process was let through. */
  stepped(process: number, fate: Fate): void {
    if (fate === 'works') return;
    for (const made of this.made) if (made.process.number === process && !made.hasEnded) made.isUnlucky = true;
  }

  /**
   * Whether the notification was accepted before the other publication was made, and both to be sent at once: then it
   * comes first.
   */
  comesBefore(notificationId: string, other: number): boolean {
    const made = this.byId.get(notificationId);
    return made?.accepted !== undefined && !made.isScheduled && made.accepted < this.made[other]!.begun;
  }

  /** Those whose process is still there, and which nobody has answered. */
  get unanswered(): number[] {
    return [...this.made.entries()]
      .filter(([, { hasEnded, process }]) => !hasEnded && process.state === 'running')
      .map(([nr]) => nr);
  }

  private answered(nr: number, made: Made, published: Published): void {
    made.hasEnded = true;
    if (published.kind !== 'accepted') {
      this.wrong.push(`publication ${nr} has no key, and is accepted (${published.kind})`);
      return;
    }
    made.accepted = ++this.events;
    this.byId.set(published.id, made);
    this.accepted.push({ id: published.id, deliveries: published.deliveries, removed: made.removed });
  }

  private refused(nr: number, made: Made, error: unknown): void {
    made.hasEnded = true;
    if (!made.isUnlucky && this.time.now() - made.begunMs < patienceMs)
      this.wrong.push(`publication ${nr} is refused only where a step failed or took long: ${String(error)}`);
  }
}
