import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { nameOf, type Delivery, type DeliveryKey, type HeldReason } from '../ledger/delivery.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { CircuitBreakers } from './circuit-breaker.js';
import { EndpointChanges } from './endpoint-changes.js';
import { inLineGauge } from './endpoints.metrics.js';
import { HoldRule, type ToCall } from './hold-rule.service.js';
import { endpointsThatHang } from './hanging.js';
import { OpenEndpoints } from './open-endpoints.service.js';
import type { Place } from './room.js';
import { Rooms } from './rooms.js';
import type { Verdict } from './verdict.js';

const tickMs = 50;
/** Of the lease of a delivery, for waiting in line: what would outlive it there would be handed out a second time. */
const waitingPart = 3;
/** Between two probes of an endpoint by one worker: deliveries that were released before it opened come all at once. */
const betweenProbesMs = 500;
/**
 * A delivery that is due for a subscription while others of it are held asks no more often whether it is alone: there
 * may be thousands, at hundreds of endpoints.
 */
const notAloneForMs = 5000;
/**
 * Where endpoints that hang have taken the places that they may have, a probe is refused, and was released in vain.
 * Their open calls find out as well: any answer closes an origin.
 */
const noRoomPauseMs = 5000;
/**
 * A third of the lease of a probe: one that has been in the queue for long, or cannot be written for once, does not
 * lose it.
 */
const keepProbesMs = 5000;

/**
 * Says of each delivery whether a worker may send it now, and judges endpoints by what comes of the calls: the circuit
 * breakers open and close by that alone.
 */
@Injectable()
export class Admission implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(Admission.name);
  private readonly rooms: Rooms;
  private readonly breakers: CircuitBreakers;
  private readonly changes: EndpointChanges;
  /** Of open endpoints: when the last probe ended; Infinity while one is under way. */
  private readonly probedAt = new Map<string, number>();
  /** Of open endpoints: those for which a delivery that is due is asking. */
  private readonly claiming = new Set<string>();
  /** By subscription. */
  private readonly notAloneUntil = new LRUCache<string, number>({ max: 10_000 });
  /** When those under way were kept last. */
  private keptProbesAt = -Infinity;
  private openBefore: ReadonlyMap<string, OpenEndpoint> = new Map();
  private ticking: NodeJS.Timeout | undefined;

  constructor(
    { settings }: Config,
    private readonly holdRule: HoldRule,
    private readonly openEndpoints: OpenEndpoints,
    private readonly ledgerClock: LedgerClock,
    private readonly clock: Clock,
  ) {
    const now = () => clock.now();
    this.rooms = new Rooms({
      places: settings.MAX_IN_FLIGHT,
      perUrl: settings.MAX_IN_FLIGHT_PER_ENDPOINT,
      longestWaitMs: settings.DELIVERY_LEASE_MS / waitingPart,
      now,
    });
    this.breakers = new CircuitBreakers(settings.CIRCUIT_BREAKER_FAILURES, now);
    this.changes = new EndpointChanges(openEndpoints, this.rooms);
  }

  onApplicationBootstrap(): void {
    // Not before what lies in the sockets is read: of a process that stood still, they may hold the answers.
    this.ticking = setInterval(() => setImmediate(() => this.tick()), tickMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.ticking);
  }

  /**
   * Gives a delivery room at its endpoint, and a place in the worker; a promise where it has to wait for them.
   * @returns why it is held, where it gets none
   */
  enter(
    delivery: Delivery,
    subscription: ToCall,
    isHandedOver: boolean,
  ): Place | HeldReason | Promise<Place | HeldReason> {
    const reason = this.holdRule.beforeCall(subscription, delivery);
    const open = this.openEndpoints.of(subscription);
    if (reason === 'endpoint-parked' && open) return this.probeIfDue(subscription, open);
    if (reason) {
      // Paused on its way: until the lease of its claim ended, for seconds, the endpoint would stay parked for all.
      if (delivery.isProbe) this.probeEnded(subscription);
      return reason;
    }
    return open ? this.probe(subscription, open.address) : this.rooms.enter(subscription, isHandedOver);
  }

  /**
   * Whether a place that the delivery waited for is still the one that it needs: subscriptions and endpoints change
   * meanwhile.
   */
  isStillFor(place: Place, delivery: Delivery, subscription: ToCall): boolean {
    if (!this.rooms.isOf(place, subscription)) return false;
    const reason = this.holdRule.beforeCall(subscription, delivery);
    return reason === undefined || (reason === 'endpoint-parked' && place.probes !== undefined);
  }

  /** The call begins now. */
  begin(place: Place): void {
    this.rooms.begin(place);
  }

  /** The call of that delivery has ended. */
  leave(place: Place, verdict: Verdict, durationMs: number, delivery: DeliveryKey): void {
    this.rooms.leave(place, verdict, durationMs);
    if (verdict.kind === 'none') return;
    if (verdict.kind === 'unanswered') return this.unanswered(place, verdict.reason, delivery);
    if (verdict.kind === 'untrusted') return this.untrusted(place, verdict.reason, delivery);
    const { address, origin } = place.room;
    this.breakers.succeeded(origin.address);
    if (verdict.kind === 'well') this.breakers.succeeded(address);
    else this.troubled(address, verdict, delivery);
    // Any answer shows that the origin is well, and any good one that a URL does not hang. Of one that is parked for
    // its errors only its probe counts: a call that began before may end well between others that do not.
    if (this.isOpen(origin.address)) this.changes.close(origin.address);
    if (verdict.kind !== 'well') return;
    const isTold = place.probes === address || (this.isOpen(address) && this.breakers.openedForSilence(address));
    if (isTold) this.changes.close(address);
  }

  /**
   * The delivery arrived before, with a call that began at `startedAt`, and is not sent again. So its endpoint is well,
   * unless it was parked after that: a probe that tells nothing would keep it parked until the next.
   */
  arrivedBefore({ probes }: Place, startedAt: number): void {
    const open = probes === undefined ? undefined : this.openEndpoints.all.get(probes);
    if (open && startedAt > open.openedAt.getTime()) this.changes.close(open.address);
  }

  /** The delivery is settled. */
  giveBack(place: Place): void {
    this.rooms.giveBack(place);
    if (place.probes === undefined) return;
    this.probedAt.set(place.probes, this.clock.now());
    // Sooner it would be refused here, and its lease would keep others away.
    void this.openEndpoints.endProbe(place.probes, betweenProbesMs, place.foundNothing);
  }

  /** It has ended without a call: another delivery is to find out, and soon. */
  probeEnded(subscription: Subscription): void {
    const address = this.openEndpoints.of(subscription)?.address;
    if (address === undefined) return;
    const isUnderWay = this.probedAt.get(address) === Infinity && !this.claiming.has(address);
    if (!isUnderWay) void this.openEndpoints.endProbe(address, betweenProbesMs, true);
  }

  /** @param keepsQueueWaiting whether what is in line may keep others from coming out of the queue */
  watchQueue(keepsQueueWaiting: () => boolean): void {
    this.rooms.watchQueue(keepsQueueWaiting);
  }

  /** The worker stops: what waits is held, and what asks from now on. */
  stop(): void {
    this.rooms.close();
  }

  /** Resolves when every place has been given back. */
  drained(): Promise<void> {
    return this.rooms.drained();
  }

  private tick(): void {
    for (const hanging of this.rooms.tick()) {
      const isOpen = (address: string) => this.isOpen(address);
      const hangsAlone = (url: string) => this.breakers.hangsAlone(url);
      for (const [address, calls] of endpointsThatHang(hanging, isOpen, hangsAlone)) {
        const reason = `none of ${calls} calls was answered, and the last answer came more than 2 s ago`;
        if (address === hanging.origin) this.openIfClosed(address, reason, calls);
        else this.openAlone(address, reason, calls);
      }
    }
    inLineGauge.set(this.rooms.inLine);
    this.forgetClosed();
    for (const address of this.probedAt.keys()) if (!this.isProbed(address)) this.probedAt.delete(address);
    this.keepProbes();
  }

  /**
   * While a call takes long no other worker may probe beside it: its delivery would use up an attempt for what this one
   * finds out.
   */
  private keepProbes(): void {
    const now = this.clock.now();
    if (now - this.keptProbesAt < keepProbesMs) return;
    this.keptProbesAt = now; // also where none is under way: most end in milliseconds, and need no statement
    const underWay: string[] = [];
    for (const [address, endedAt] of this.probedAt)
      if (endedAt === Infinity && !this.claiming.has(address)) underWay.push(address);
    if (underWay.length > 0) void this.openEndpoints.keepProbes(underWay);
  }

  /** One that any process, or an operator, has closed begins anew: failures before that no longer count. */
  private forgetClosed(): void {
    const { all } = this.openEndpoints;
    if (all === this.openBefore) return;
    for (const address of this.openBefore.keys()) {
      if (all.has(address)) continue;
      this.breakers.closed(address);
      this.changes.haveSeenClosed(address);
    }
    this.openBefore = all;
  }

  private isProbed(address: string): boolean {
    return this.clock.now() - (this.probedAt.get(address) ?? -Infinity) < betweenProbesMs;
  }

  /**
   * A delivery that is due when a probe is due too is the probe, and so is one that is alone: it keeps its schedule.
   */
  private async probeIfDue(subscription: Subscription, open: OpenEndpoint): Promise<Place | HeldReason> {
    if (this.isProbed(open.address) || open.leftAloneUntil.getTime() > this.ledgerClock.now()) return 'endpoint-parked';
    const isDue = open.nextProbeAt.getTime() <= this.ledgerClock.now();
    if (!isDue && this.clock.now() < (this.notAloneUntil.get(subscription.id) ?? -Infinity)) return 'endpoint-parked';
    this.probedAt.set(open.address, Infinity); // before the claim: a hundred that are due together must not each write one
    this.claiming.add(open.address);
    const isClaimed = await this.claimProbe(open, subscription.id);
    if (!this.claiming.delete(open.address)) return 'endpoint-parked'; // one that was released is under way
    if (isClaimed) return this.enterAsProbe(subscription, open.address);
    if (isDue) this.probedAt.set(open.address, this.clock.now());
    else this.probedAt.delete(open.address); // one that is due, or alone, comes at any moment
    this.notAloneUntil.set(subscription.id, this.clock.now() + notAloneForMs);
    return 'endpoint-parked';
  }

  private async claimProbe(open: OpenEndpoint, subscriptionId: string): Promise<boolean> {
    try {
      return await this.openEndpoints.claimProbe(open, subscriptionId);
    } catch (error) {
      this.logger.warn({ event: 'endpoint.probe-failed', address: open.address, error });
      return false;
    }
  }

  /**
   * One at a time. One that comes too soon gives its claim back, which would keep others away; of one under way the end
   * does. One that comes while another delivery asks for the same goes: it has the claim.
   */
  private async probe(subscription: Subscription, address: string): Promise<Place | HeldReason> {
    if (!this.claiming.delete(address) && this.isProbed(address)) {
      if (this.probedAt.get(address) !== Infinity) void this.openEndpoints.endProbe(address, betweenProbesMs);
      return 'endpoint-parked';
    }
    this.probedAt.set(address, Infinity);
    return this.enterAsProbe(subscription, address);
  }

  private async enterAsProbe(subscription: Subscription, address: string): Promise<Place | HeldReason> {
    const place = await this.rooms.enter(subscription);
    if (typeof place === 'string') {
      this.probedAt.delete(address);
      void this.openEndpoints.endProbe(address, noRoomPauseMs);
      return 'endpoint-parked';
    }
    place.probes = address;
    return place;
  }

  /**
   * It counts for both, unless the URL hangs alone: it is parked already, or has reached the threshold by itself beside
   * others that answer, which may be quiet. A probe of the origin tells nothing of the URL that happens to make it.
   */
  private unanswered({ probes, room: { address, origin } }: Place, reason: string, delivery: DeliveryKey): void {
    const ofUrl = probes === origin.address ? undefined : this.failed(address, delivery);
    const isAlone =
      this.isOpen(address) ||
      (origin.answersBeside(address) && (ofUrl !== undefined || this.breakers.hangsAlone(address)));
    const ofOrigin = isAlone ? undefined : this.failed(origin.address, delivery);
    if (this.isOpen(origin.address)) return;
    if (isAlone) this.rooms.keepRoomBeside(address);
    if (ofOrigin !== undefined) this.openIfClosed(origin.address, reason, ofOrigin);
    else if (ofUrl !== undefined) this.openAlone(address, reason, ofUrl);
  }

  /**
   * Its origin is neither in trouble for that nor well: others, with another TLS identity or none, are called as
   * before. Where the origin is parked and this was its probe, the URL is parked beside it for this identity, so that
   * the next probe of the origin, which comes soon, is of another one; where it is parked already, it is left alone for
   * longer than the origin for the same reason.
   */
  private untrusted(place: Place, reason: string, delivery: DeliveryKey): void {
    const { address, origin } = place.room;
    const failures = this.failed(address, delivery);
    place.foundNothing = place.probes === origin.address;
    if (place.foundNothing) this.changes.open(address, { reason, failures: failures ?? 1, askedMs: undefined });
    else if (failures !== undefined) this.openIfClosed(address, reason, failures);
  }

  private troubled(address: string, verdict: Verdict & { kind: 'troubled' }, delivery: DeliveryKey): void {
    const { reason, askedDelayMs = 0 } = verdict;
    const failures = this.failed(address, delivery);
    if (askedDelayMs > 0) this.changes.open(address, { reason, failures: failures ?? 1, askedMs: askedDelayMs });
    else if (failures !== undefined) this.openIfClosed(address, reason, failures);
  }

  private failed(address: string, delivery: DeliveryKey): number | undefined {
    return this.breakers.failed(address, nameOf(delivery));
  }

  /** The URL hangs, and not its origin. */
  private openAlone(url: string, reason: string, failures: number): void {
    if (this.isOpen(url)) return;
    this.breakers.opensForSilence(url);
    this.rooms.keepRoomBeside(url);
    this.openIfClosed(url, reason, failures);
  }

  private openIfClosed(address: string, reason: string, failures: number): void {
    if (!this.isOpen(address)) this.changes.open(address, { reason, failures, askedMs: undefined });
  }

  private isOpen(address: string): boolean {
    return this.openEndpoints.all.has(address);
  }
}
