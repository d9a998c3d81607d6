import type { Clock } from '../../src/infra/clock.js';
import { readSettings } from '../../src/config/settings.js';
import { Admission } from '../../src/endpoints/admission.service.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import type { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { endpointsOf, type Callback } from '../../src/endpoints/origin.js';
import { Place } from '../../src/endpoints/room.js';
import { well, type Verdict } from '../../src/endpoints/verdict.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import type { OpenEndpoint } from '../../src/ledger/open-endpoints.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Subscription } from '../../src/subscriptions/subscription.js';
import { settled } from './settled.js';

const timeoutMs = 10_000;
const stepMs = 10;
const lookMs = 500;
/** Released at once for one URL whose endpoint is not parked. */
const firstWindow = 16;
const timedOut: Verdict = { kind: 'unanswered', reason: 'no answer within 10 s' };

/** A URL that is published to each so many milliseconds. */
export interface SharedUrl {
  url: string;
  everyMs: number;
  /** Infinity: it hangs. */
  answerMs: number;
  verdict?: Verdict;
}

interface Parked extends Pick<OpenEndpoint, 'address' | 'openedAt' | 'nextProbeAt' | 'leftAloneUntil'> {
  isProbed: boolean;
}

/**
 * One worker, in virtual time, with a ledger and a dispatcher as simple as can be: what is held for a URL is released
 * each half second, one delivery as a probe while its endpoint is parked, of the URLs that lead there in turn.
 */
export class SharedHost {
  /** Endpoints that were parked, in order. */
  readonly parked: { address: string; atMs: number }[] = [];
  /** Deliveries that were held, by URL. */
  readonly held = new Map<string, number>();
  /** When what went well was answered, by URL. */
  readonly delivered = new Map<string, number[]>();
  nowMs = 0;
  private readonly open = new Map<string, Parked>();
  private readonly waiting = new Map<string, Delivery[]>();
  private readonly due = new Map<number, (() => void)[]>();
  private readonly admission: Admission;
  private count = 0;
  private turn = 0;

  constructor(readonly urls: SharedUrl[]) {
    const openEndpoints = this.openEndpoints();
    this.admission = new Admission(
      { settings: readSettings({}) },
      new HoldRule(openEndpoints),
      openEndpoints,
      { now: () => this.nowMs } as LedgerClock,
      { now: () => this.nowMs } as Clock,
    );
  }

  isParked(address: string): boolean {
    return this.open.has(address);
  }

  async run(seconds: number): Promise<void> {
    for (const until = this.nowMs + seconds * 1000; this.nowMs < until; this.nowMs += stepMs) {
      for (const end of this.due.get(this.nowMs) ?? []) end();
      this.due.delete(this.nowMs);
      for (const each of this.urls) if (this.nowMs % each.everyMs === 0) this.publish(each);
      if (this.nowMs % 50 === 0) (Reflect.get(this.admission, 'tick') as () => void).call(this.admission);
      if (this.nowMs % lookMs === 0) this.release();
      await settled();
    }
  }

  /** One notification more for it, now. */
  publish(to: SharedUrl): void {
    this.deliver(to, this.delivery(false, false));
  }

  private delivery(isReleased: boolean, isProbe: boolean): Delivery {
    return { notificationId: String(++this.count), subscriptionId: 's', isReleased, isProbe } as Delivery;
  }

  private deliver(to: SharedUrl, delivery: Delivery): void {
    const subscription = { id: to.url, callbackUrl: to.url, credentials: {}, maxConcurrency: null, pausedAt: null };
    const entered = this.admission.enter(delivery, { ...subscription, ratePerSecond: null } as Subscription, false);
    void Promise.resolve(entered).then((place) => {
      if (place instanceof Place) return this.call(to, delivery, place);
      this.held.set(to.url, (this.held.get(to.url) ?? 0) + 1);
      this.hold(to, delivery);
    });
  }

  private hold({ url }: SharedUrl, delivery: Delivery): void {
    this.waiting.set(url, [...(this.waiting.get(url) ?? []), delivery]);
  }

  private call(to: SharedUrl, delivery: Delivery, place: Place): void {
    this.admission.begin(place);
    const durationMs = Math.min(to.answerMs, timeoutMs);
    const verdict = to.answerMs < timeoutMs ? (to.verdict ?? well) : timedOut;
    const at = this.nowMs + Math.max(durationMs, stepMs);
    const end = () => {
      this.admission.leave(place, verdict, durationMs, delivery);
      this.admission.giveBack(place);
      if (verdict === well) this.delivered.set(to.url, [...(this.delivered.get(to.url) ?? []), this.nowMs]);
    };
    this.due.set(at, [...(this.due.get(at) ?? []), end]);
  }

  private release(): void {
    const first = this.turn;
    for (let nr = 0; nr < this.urls.length; nr++) {
      const to = this.urls[(nr + first) % this.urls.length]!;
      const waiting = this.waiting.get(to.url) ?? [];
      if (waiting.length === 0) continue;
      const open = this.of({ callbackUrl: to.url, credentials: {} });
      if (!open) for (const each of waiting.splice(0, firstWindow)) this.deliver(to, { ...each, isReleased: true });
      else if (!open.isProbed && open.nextProbeAt.getTime() <= this.nowMs) {
        open.isProbed = true;
        this.turn = this.urls.indexOf(to) + 1;
        this.deliver(to, { ...waiting.shift()!, isReleased: true, isProbe: true });
      }
    }
  }

  private of(callback: Callback): Parked | undefined {
    const [origin, url] = endpointsOf(callback).map((address) => this.open.get(address));
    if (!origin || !url) return origin ?? url;
    return url.nextProbeAt > origin.nextProbeAt ? url : origin;
  }

  private openEndpoints(): OpenEndpoints {
    const { open, parked } = this;
    let all: ReadonlyMap<string, Parked> = new Map();
    return {
      of: (callback: Callback) => this.of(callback),
      get all() {
        // Another map after each change only, as after a read.
        if (all.size !== open.size || [...open].some(([address, each]) => all.get(address) !== each))
          all = new Map(open);
        return all;
      },
      claimProbe: () => Promise.resolve(false),
      keepProbes: () => Promise.resolve(),
      endProbe: (address: string, pauseMs: number) => {
        const ended = open.get(address);
        if (!ended) return Promise.resolve();
        ended.isProbed = false;
        ended.nextProbeAt = new Date(Math.max(this.nowMs + pauseMs, ended.nextProbeAt.getTime()));
        return Promise.resolve();
      },
      open: (address: string) => {
        if (open.has(address)) return Promise.resolve();
        const nextProbeAt = new Date(this.nowMs + 1000);
        const openedAt = new Date(this.nowMs);
        open.set(address, { address, openedAt, nextProbeAt, leftAloneUntil: nextProbeAt, isProbed: false });
        parked.push({ address, atMs: this.nowMs });
        return Promise.resolve();
      },
      close: (address: string) => Promise.resolve(open.delete(address)),
    } as unknown as OpenEndpoints;
  }
}
