import type { DeliveryGuarantee } from '../../src/subscriptions/subscription.js';
import type { Fate } from './gates.js';
import type { VirtualTime } from '../support/virtual-time.js';

/**
 * From its being had, a lock lasts for 1000 ms (the setting of the model's spec), and is first extended after 600 to
 * 700. The extension is a step that may come late; without one, no other process has the lock sooner than this.
 */
const lockedForMs = 600;

/** A call that was begun. A further one for the same delivery has to be explained by it. */
export interface Begun {
  readonly process: number;
  readonly key: string;
  /** Number of its publication. */
  readonly publication: number;
  /** When its process had the lock of the delivery, or the lease under which it went without. */
  readonly coveredSince: { ms: number; event: number };
  /** When the ledger was seen to say that it succeeded. */
  settledAt: number | undefined;
  /** Its process was told of its success. */
  hasSucceeded: boolean;
  /** Its process was told that it failed, or that nothing is known. */
  hasFailed: boolean;
  /** … and that no byte of it was sent. */
  isUnsent: boolean;
  /** Before the ledger knew of it, its process was killed, or was not heard when it wrote a lock or a seal. */
  isUnlucky: boolean;
}

/** The last question of a process for its locks. */
interface Locking {
  asked: { ms: number; event: number };
  answeredAt: number;
}

/** All calls in the order in which they were begun, and those of them that nothing allowed. */
export class Calls {
  private readonly byKey = new Map<string, Begun[]>();
  private readonly locking = new Map<number, Locking>();
  private first: Begun[] = [];
  private readonly wrong: string[] = [];
  private events = 0;
  /** When all locks and seals were lost, the last time. */
  private forgottenAt = 0;
  /** Calls of each guarantee. */
  readonly count: Record<DeliveryGuarantee, number> = { 'at-least-once': 0, 'at-most-once': 0 };

  constructor(
    private readonly time: VirtualTime,
    /** Of the subscription of a delivery. */
    private readonly guaranteeOf: (key: string) => DeliveryGuarantee,
    /** How often an operator had a delivery sent again. */
    private readonly replaysOf: (key: string) => number,
    /** Why a call should not have been begun, however often it was before. */
    private readonly objectionTo: (call: Begun) => string | undefined,
  ) {}

  begin(process: number, key: string, publication: number): Begun {
    const locking = this.locking.get(process);
    const now = this.now();
    const call: Begun = {
      process,
      key,
      publication,
      coveredSince: locking?.answeredAt === now.ms ? locking.asked : now,
      settledAt: undefined,
      hasSucceeded: false,
      hasFailed: false,
      isUnsent: false,
      isUnlucky: false,
    };
    const guarantee = this.guaranteeOf(key);
    this.count[guarantee]++;
    const calls = this.byKey.get(key) ?? [];
    this.byKey.set(key, calls);
    if (calls.length === 0) this.first.push(call);
    calls.push(call);
    const isExplained = guarantee === 'at-most-once' ? (each: Begun) => each.isUnsent : this.mayBeRepeated;
    const unexplained = calls.filter((each) => !isExplained(each));
    if (unexplained.length > 1 + this.replaysOf(key))
      this.wrong.push(
        `${key} (${guarantee}) is called once more only after a failure, a misfortune or at an operator's wish: ` +
          `processes ${unexplained.map((each) => each.process).join(', ')} called it`,
      );
    const objection = this.objectionTo(call);
    if (objection !== undefined) this.wrong.push(objection);
    return call;
  }

  /** Whether anything was begun that the judge has not looked at. */
  get areNew(): boolean {
    return this.first.length + this.wrong.length > 0;
  }

  /** The first calls of their deliveries since the last look. */
  takeFirst(): Begun[] {
    return this.first.splice(0);
  }

  /** The first fault of the calls so far. */
  get firstWrong(): string | undefined {
    return this.wrong[0];
  }

  /** Of a delivery: a call of it was begun, and is not known to have ended before a byte of it was sent. */
  mayHaveArrived(key: string): boolean {
    return (this.byKey.get(key) ?? []).some((call) => !call.isUnsent);
  }

  /** The ledger says that it is delivered. */
  settled(key: string): void {
    for (const call of this.byKey.get(key) ?? []) if (call.hasSucceeded) call.settledAt ??= this.time.now();
  }

  /** A step of a process was let through. */
  stepped(process: number, what: string, fate: Fate): void {
    const now = this.now();
    const locking = this.locking.get(process);
    if (what === 'idempotency-acquire') this.locking.set(process, { asked: now, answeredAt: now.ms });
    // The second step of the same question, where another one of its batch was not given.
    else if (what === 'idempotency-read' && locking) locking.answeredAt = now.ms;
    else if (what === 'idempotency-change' && fate === 'fails') this.struck(process);
  }

  /** A process was killed, or one of its seals was refused. */
  struck(process: number): void {
    for (const calls of this.byKey.values())
      for (const call of calls) if (call.process === process && call.settledAt === undefined) call.isUnlucky = true;
  }

  /** Locks and seals were lost. */
  forgotten(): void {
    this.forgottenAt = ++this.events;
  }

  private now(): { ms: number; event: number } {
    return { ms: this.time.now(), event: ++this.events };
  }

  private readonly mayBeRepeated = ({ coveredSince, settledAt, hasFailed, isUnlucky }: Begun): boolean =>
    hasFailed ||
    isUnlucky ||
    coveredSince.event < this.forgottenAt ||
    (settledAt ?? this.time.now()) - coveredSince.ms >= lockedForMs;
}
