import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { releasedCounted } from '../endpoints/endpoints.metrics.js';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { planRelease, type ReleasePlan } from '../endpoints/plan-release.js';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { claimLooks, endLooks, forgetHeldSubscriptions, type Look } from '../ledger/held-subscriptions.js';
import { bringLooksForward, postponeLooks, type LookLeft } from '../ledger/planned-looks.js';
import { release, type ReleaseLimit } from '../ledger/release.js';
import { firstWindow } from '../ledger/release-window.js';
import { anyHeld, anyReleased, readNotPaused } from '../ledger/unsettled-held.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Enqueuer } from '../queue/enqueuer.service.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { acceptedWithin } from './accepted-within.js';
import { LaneRoom } from './lane-room.js';
import {
  limitFor,
  inStatements,
  madeInVain,
  madeLook,
  soon,
  soonInMs,
  wantsOf,
  withinLevel,
  type MadeLook,
  type Planned,
  type ReleasedOf,
} from './made-look.js';
import { ParkedLooks } from './parked-looks.js';
import type { Left } from './release-all.js';

/** Subscriptions that are looked at together. */
const looksTogether = 64;

/**
 * Releases held deliveries, oldest first: as many as the endpoint has shown it can take, as the rate of the
 * subscription allows, or one as a probe of an endpoint in trouble. Any number of processes may run it: each
 * subscription is looked at by one at a time, but where a look is made due while it is under way.
 */
@Injectable()
export class Releaser {
  /**
   * Nothing can have been held unseen for this long (see `forgetHeldSubscriptions`), by a process whose
   * DATABASE_TIMEOUT is at most twice this one's and half a minute more.
   */
  private readonly forgetAfterMs: number;
  private readonly parkedLooks = new ParkedLooks();
  private readonly laneRoom: LaneRoom;

  constructor(
    private readonly postgres: Postgres,
    private readonly enqueuer: Enqueuer,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly openEndpoints: OpenEndpoints,
    private readonly ledgerClock: LedgerClock,
    private readonly catalogue: Catalogue,
    private readonly clock: Clock,
    { settings }: Config,
  ) {
    this.forgetAfterMs = acceptedWithin(settings.DATABASE_TIMEOUT);
    this.laneRoom = new LaneRoom(
      () => enqueuer.roomForReleased(),
      () => clock.now(),
    );
  }

  /**
   * Makes all looks that are due.
   * @param afterLooks told after some of them: where hundreds of subscriptions are looked at, there may always be one
   *   that is due
   * @returns how many deliveries were released
   */
  async releaseHeld(stopping: AbortSignal, afterLooks?: () => void): Promise<number> {
    let total = 0;
    let times = 0;
    await this.seeOpen();
    while (this.enqueuer.accepts('slow') && !stopping.aborted) {
      await bringLooksForward(this.postgres, this.parkedLooks.sooner(this.openEndpoints.all, this.ledgerClock.now()));
      const looks = await claimLooks(this.postgres, looksTogether);
      // A subscription that was just resumed by another process would be taken for paused, and not be looked at again
      // soon.
      if (looks[0]) await this.catalogue.reach(looks[0].catalogueVersion);
      const { made, isRefused } = await this.make(looks);
      total += made.reduce((sum, { lookedAt }) => sum + lookedAt.released, 0);
      afterLooks?.();
      if (isRefused) break; // the next round finds whether there is room again
      if (looks.length === looksTogether) continue;
      const soonMs = made.flatMap(({ isSoon, lookedAt }) => (isSoon ? lookedAt.nextLookInMs : []));
      if (soonMs.length === 0 || ++times > soon.times) break;
      await this.clock.pause(Math.min(...soonMs), stopping);
      await this.seeOpen();
    }
    return total;
  }

  /** Deliveries of an endpoint that was just closed would wait for the next look. */
  private async seeOpen(): Promise<void> {
    if (this.openEndpoints.isAnyOpen) await this.openEndpoints.refresh();
  }

  /**
   * Deliveries that are left of subscriptions that are not paused. One held for a parked endpoint does not count: it
   * waits until that recovers.
   */
  async findLeft(): Promise<Left> {
    await this.seeOpen();
    const isParked = (id: string): boolean => {
      const subscription = this.subscriptions.find(id);
      return subscription !== undefined && !subscription.disabledAt && !!this.openEndpoints.of(subscription);
    };
    let isAnyReleased = false;
    for await (const notPaused of readNotPaused(this.postgres)) {
      const notParked = notPaused.filter((id) => !isParked(id));
      if (await anyHeld(this.postgres, notParked)) return 'held';
      isAnyReleased ||= await anyReleased(this.postgres, notPaused);
    }
    return isAnyReleased ? 'released' : 'nothing';
  }

  private plan(look: Look): ReleasePlan {
    const subscription = this.subscriptions.find(look.subscriptionId);
    const endpoint = subscription && this.openEndpoints.of(subscription);
    return planRelease(look, subscription, endpoint, this.ledgerClock.now());
  }

  /** Each step is one statement for all of them: two hundred endpoints in trouble are looked at four times a second. */
  private async make(looks: readonly Look[]): Promise<{ made: MadeLook[]; isRefused: boolean }> {
    const planned = looks.map((look): Planned => ({ look, plan: this.plan(look) }));
    await this.leaveParked(planned);
    const notParked = planned.filter(({ plan }) => plan.kind !== 'parked');
    if (notParked.length === 0) return { made: [], isRefused: false };
    const level = await this.laneRoom.levelFor(wantsOf(notParked), looks.length === looksTogether);
    const toMake = withinLevel(notParked, level);
    const probing = await this.claimProbes(toMake);
    const limits = toMake.flatMap((each) => limitFor(each, probing) ?? []);
    const { released, failures, isRefused } = await this.release(limits, probing);
    // Deliveries that the queue refused come again later, and not as a probe.
    const isUnused = ({ look }: Planned) => isRefused || !released.get(look.subscriptionId)?.count;
    await this.giveBack(toMake.filter((each) => probing.has(each.look.subscriptionId) && isUnused(each)));
    const soonMs = soonInMs(looks.length);
    const failed = new Set(failures.flatMap(({ asked }) => asked.map(({ subscriptionId }) => subscriptionId)));
    const made = toMake
      .filter(({ look }) => !failed.has(look.subscriptionId))
      .map((each) => {
        const look = madeLook(each, released.get(each.look.subscriptionId), soonMs, this.forgetAfterMs);
        return isRefused ? madeInVain(look, each.look) : look;
      });
    await this.end(made);
    // Those are looked at again when their claim has ended.
    if (failures[0]) throw failures[0].error;
    return { made, isRefused };
  }

  private async end(made: readonly MadeLook[]): Promise<void> {
    if (made.length === 0) return;
    await endLooks(
      this.postgres,
      made.map(({ lookedAt }) => lookedAt),
    );
    const idle = made.flatMap(({ lookedAt }) => (lookedAt.released === 0 ? lookedAt.subscriptionId : []));
    if (idle.length > 0) await forgetHeldSubscriptions(this.postgres, idle, this.forgetAfterMs);
  }

  private async leaveParked(planned: readonly Planned[]): Promise<void> {
    const left: LookLeft[] = [];
    for (const { look, plan } of planned) {
      const { subscriptionId, claimedUntil } = look;
      if (plan.kind === 'parked' || plan.kind === 'probe') this.parkedLooks.add(plan.endpoint, subscriptionId);
      if (plan.kind === 'parked') left.push({ subscriptionId, claimedUntil, nextLookInMs: plan.nextLookInMs });
    }
    if (left.length > 0) await postponeLooks(this.postgres, left, firstWindow);
  }

  /** @returns the subscriptions of which a delivery is to be released as a probe */
  private async claimProbes(planned: readonly Planned[]): Promise<Set<string>> {
    const claims = planned.flatMap(({ look, plan }) =>
      plan.kind === 'probe'
        ? [{ address: plan.endpoint.address, subscriptionId: look.subscriptionId, isRelease: true }]
        : [],
    );
    const met = claims.length > 0 ? await this.openEndpoints.claimProbes(claims) : [];
    return new Set(met.map(({ subscriptionId }) => subscriptionId));
  }

  /**
   * Probes for which nothing was released, or that the queue may have refused: until the lease of such a claim ended,
   * nobody else could make one.
   */
  private async giveBack(unused: readonly Planned[]): Promise<void> {
    const ending = unused.flatMap(({ plan }) =>
      plan.kind === 'probe' ? [this.openEndpoints.endProbe(plan.endpoint.address, plan.nextLookInMs)] : [],
    );
    await Promise.all(ending);
  }

  /** A statement that fails keeps no delivery of the others from being released. */
  private async release(limits: readonly ReleaseLimit[], probing: ReadonlySet<string>): Promise<ReleasedTogether> {
    const together: ReleasedTogether = { released: new Map(), failures: [], isRefused: false };
    const releaseSome = async (asked: ReleaseLimit[]) => {
      const { deliveries, outstanding, ...rest } = await release(this.postgres, asked, this.enqueuer.process);
      for (const delivery of deliveries) delivery.isProbe = probing.has(delivery.subscriptionId);
      const refusing = await this.enqueuer.enqueueAll({ deliveries, ...rest });
      if (refusing.length > 0) together.isRefused = true;
      for (const [subscriptionId, before] of outstanding)
        together.released.set(subscriptionId, { count: 0, outstanding: before });
      for (const { subscriptionId, isProbe } of deliveries) {
        together.released.get(subscriptionId)!.count++;
        releasedCounted.inc({ as: isProbe ? 'probe' : 'flow' });
      }
    };
    const each = inStatements(limits).map((asked) =>
      releaseSome(asked).catch((error: unknown) => void together.failures.push({ asked, error })),
    );
    await Promise.all(each);
    return together;
  }
}

interface ReleasedTogether {
  /** By subscription. */
  released: Map<string, ReleasedOf>;
  failures: { asked: readonly ReleaseLimit[]; error: unknown }[];
  /** The queue did not take all of it. */
  isRefused: boolean;
}
