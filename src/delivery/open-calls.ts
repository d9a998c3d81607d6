import { RunningTime } from '../infra/running-time.js';
import { FailingSince } from '../outbound/failing-since.js';
import { Call, type Asked, type SharedByCalls } from './call.js';
import type { WebhookResponse } from './webhook-client.js';

/**
 * Bodies that are read on after the answer was told, at most: each keeps a connection busy that no window counts. An
 * origin has no more of them than it leaves to others, so that one whose bodies drip costs no other one its
 * connections.
 */
const mostReadOn = 128;

/** The calls of a process that are not over. */
export class OpenCalls implements SharedByCalls {
  private readonly calls = new Set<Call>();
  private readOn = 0;
  private isAbandoned = false;
  private readonly readOnOf = new Map<string, number>();
  /** By origin: what this machine lacks may be the port or the network for that one alone. */
  private readonly machineFailing = new FailingSince();
  /**
   * By which time limits count: while this process stands still it does not read what receivers answer, nor does it
   * finish a connection that is being made.
   */
  private readonly time = new RunningTime(() => performance.now());

  constructor(
    readonly outbound: SharedByCalls['outbound'],
    readonly now: () => number = Date.now,
  ) {}

  /** @param origin to which it goes */
  open(origin: string, asked: Asked, resolve: (response: WebhookResponse) => void): Call {
    const call = new Call(origin, asked, resolve, this);
    this.calls.add(call);
    if (this.isAbandoned) call.abandon(); // one that waited for a token when the others were
    return call;
  }

  tellEarly({ origin }: Call): boolean {
    const before = this.readOnOf.get(origin) ?? 0;
    const mayReadOn = before < mostReadOn - this.readOn;
    this.readOn++;
    this.readOnOf.set(origin, before + 1);
    return mayReadOn;
  }

  close(call: Call, wasToldEarly: boolean): void {
    this.calls.delete(call);
    if (!wasToldEarly) return;
    this.readOn--;
    const left = this.readOnOf.get(call.origin)! - 1;
    if (left > 0) this.readOnOf.set(call.origin, left);
    else this.readOnOf.delete(call.origin);
  }

  noteFailureOfMachine(origin: string): number {
    this.machineFailing.note(origin);
    return this.machineFailing.forMs(origin);
  }

  /** To be asked for as often as RunningTime needs it, which the sweep for overdue calls does. */
  runningNow(): number {
    return this.time.now();
  }

  reached(origin: string): void {
    this.machineFailing.end(origin);
  }

  /** @param now a `runningNow`; all that came before it has been read */
  endOverdue(now: number): void {
    for (const call of this.calls) {
      if (call.deadline <= now) call.endOverdue();
      else if (call.halfTime <= now) call.endInLine();
    }
  }

  /** From then on none is begun. */
  abandonAll(): void {
    this.isAbandoned = true;
    for (const call of [...this.calls]) call.abandon();
  }
}
