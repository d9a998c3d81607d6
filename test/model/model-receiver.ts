import { WebhookClient, type WebhookRequest, type WebhookResponse } from '../../src/delivery/webhook-client.js';
import { abandoned, answered, unanswered } from '../support/responses.js';
import type { Begun, Calls } from './calls.js';
import { Publications } from './publications.js';

/** The next event of a call, at the receiver or in the network before it. */
export type CallEvent = 'refuse' | 'send' | 'arrive' | 'lose' | 'vanish' | 200 | 410 | 500;

export interface Tally {
  /** Calls made, also those of which no byte was sent. */
  calls: number;
  /** Requests that arrived at the receiver. */
  arrived: number;
  accepted: number;
  refused: number;
  gone: number;
  /** Calls that ended without an answer. */
  unanswered: number;
  /** Processes that heard of a success. */
  heardBy: number[];
}

interface Call {
  begun: Begun;
  wire: 'here' | 'sent' | 'arrived';
  /** Undefined once the caller knows an end of it, or is no more. */
  tell: ((response: WebhookResponse) => void) | undefined;
}

/** All receivers, and the network before them. */
export class ModelReceiver {
  private calls: Call[] = [];
  private readonly ended = new Set<number>();
  private readonly tallies = new Map<string, Tally>();

  constructor(private readonly allCalls: Calls) {}

  get count(): number {
    return this.calls.length;
  }

  /** @param key notification and subscription */
  of(key: string): Tally {
    let tally = this.tallies.get(key);
    if (!tally) {
      tally = { calls: 0, arrived: 0, accepted: 0, refused: 0, gone: 0, unanswered: 0, heardBy: [] };
      this.tallies.set(key, tally);
    }
    return tally;
  }

  post(process: number, { headers, body }: WebhookRequest): Promise<WebhookResponse> {
    if (this.ended.has(process)) return new Promise(() => {}); // a timer of it still ran
    const key = `${headers['webhook-id']} ${headers.authorization}`;
    this.of(key).calls++;
    const begun = this.allCalls.begin(process, key, Publications.numberOf(body));
    return new Promise((tell) => this.calls.push({ begun, wire: 'here', tell }));
  }

  /**
   * The next event of the `pick`-th call; what has to come before comes, too.
   * @returns which call it was
   */
  event(pick: number, event: CallEvent): string[] {
    const call = this.calls[pick % this.calls.length];
    if (!call) return [];
    const { process, key } = call.begun;
    const told = call.tell ? 'told' : 'not told';
    switch (event) {
      case 'refuse':
        if (call.wire === 'here') this.tell(call, unanswered('ECONNRESET', false));
        break;
      case 'send':
        if (call.wire === 'here') call.wire = 'sent';
        break;
      case 'arrive':
        this.arrive(call);
        break;
      case 'lose': // the caller's time is up, or its connection broke; what is on its way may still arrive
        this.tell(call, unanswered('ECONNRESET', call.wire !== 'here'));
        break;
      case 'vanish': // on its way, and never to arrive
        if (call.wire === 'here') call.wire = 'sent';
        this.tell(call, unanswered('ECONNRESET', true));
        this.forget(call);
        break;
      default:
        this.arrive(call);
        this.answer(call, event);
    }
    if (!call.tell && call.wire !== 'sent') this.forget(call);
    return [`${process} call ${key.slice(14, 23)}…${key.slice(-4)}: ${event}, ${told}`];
  }

  abandonAll(process: number): void {
    for (const call of [...this.calls]) {
      if (call.begun.process !== process || !call.tell) continue;
      call.begun.hasFailed = true;
      call.begun.isUnsent = call.wire === 'here';
      call.tell(abandoned(call.wire !== 'here'));
      call.tell = undefined;
      if (call.wire !== 'sent') this.forget(call);
    }
  }

  /** The process is gone and gets no answers any more; requests it sent still arrive. */
  end(process: number): void {
    this.ended.add(process);
    for (const call of this.calls) if (call.begun.process === process) call.tell = undefined;
    this.calls = this.calls.filter((call) => call.tell || call.wire === 'sent');
  }

  private arrive(call: Call): void {
    if (call.wire === 'arrived') return;
    call.wire = 'arrived';
    this.of(call.begun.key).arrived++;
  }

  private answer(call: Call, status: number): void {
    const { begun } = call;
    const tally = this.of(begun.key);
    if (status !== 200) {
      tally.refused++;
      if (call.tell) begun.hasFailed = true;
    } else {
      tally.accepted++;
      if (call.tell) begun.hasSucceeded = true;
      if (call.tell) tally.heardBy.push(begun.process);
    }
    if (status === 410) tally.gone++;
    call.tell?.(answered(status));
    call.tell = undefined;
  }

  private tell(call: Call, response: WebhookResponse): void {
    if (call.tell) {
      this.of(call.begun.key).unanswered++;
      call.begun.hasFailed = true;
      call.begun.isUnsent = call.wire === 'here';
    }
    call.tell?.(response);
    call.tell = undefined;
  }

  private forget(call: Call): void {
    this.calls = this.calls.filter((other) => other !== call);
  }
}

/** The receivers as one process reaches them. */
export class ModelWebhookClient extends WebhookClient {
  constructor(
    private readonly receiver: ModelReceiver,
    private readonly process: number,
  ) {
    super();
  }

  post(request: WebhookRequest): Promise<WebhookResponse> {
    return this.receiver.post(this.process, request);
  }

  abandonAll(): void {
    this.receiver.abandonAll(this.process);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
