import { Injectable, Logger } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { HoldRule } from '../endpoints/hold-rule.service.js';
import { RequestsUnderWay } from '../request-keys/idempotency-key.js';
import { Batcher } from '../infra/batcher.js';
import { ProblemError } from '../infra/http/problem.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { accept } from '../ledger/accept.js';
import type { Acceptance, Accepted, Decision } from '../ledger/acceptance.js';
import { findByKeyOrWait } from '../ledger/find-by-key.js';
import type { HeldReason } from '../ledger/delivery.js';
import type { Deadline } from '../ledger/may-write.js';
import { PartitionKeeper } from '../ledger/partition-keeper.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { HandOver, type Way } from '../queue/hand-over.service.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { deliveriesForNow } from './deliveries-for-now.js';
import { matchNow } from './match-now.js';
import { explainNotStored } from './not-stored.js';
import { notificationIds } from './notification-ids.js';
import { PublicationReporter } from './publication-reporter.service.js';
import type { Publication, Published, RequestedPublication } from './publication.js';
import { publishingLimits, type PublishingLimits } from './publishing-limits.js';

/** A publication under the id that its notification gets. */
interface WithId extends Publication {
  id: string;
}

const none: ReadonlyMap<string, HeldReason> = new Map();

type Replayed = Published & { kind: 'replayed' };
type Undecided = Decision & { kind: 'undecided' };

/**
 * Values that cannot be stored, and every problem of `matchNow`: publishers that were refused since they were admitted,
 * for whichever reason, and channels that were removed since the publication was read. Nothing of the batch is written
 * then.
 */
const isOfOneItem = (error: unknown): boolean => isDataError(error) || error instanceof ProblemError;

const batching = { maxItems: 256, lingerMs: 2, concurrency: 2, isolate: isOfOneItem };
/** Memory of one delivery while its batch is written: as an object, as parameters and as part of a message. */
const bytesOfDelivery = 400;

/**
 * Hot path, first half: batch → match → commit → send.
 *
 * - batch: a publication gets an id, and is written together with those that arrive at the same time;
 * - match: the subscriptions of each, and the rules of its channel, are found in the catalogue in memory;
 * - commit: the ledger writes the notifications with their deliveries, and reserves each key for one of them. It
 *   refuses when the catalogue has changed since they were matched; then they are matched again. It also refuses what
 *   reaches it so late that the publishers may have been told that it was not stored (docs/decisions/0020);
 * - send: deliveries that are due go to a worker, by the queue or straight to that of this process or of a sibling. The
 *   publisher is answered after the commit and does not wait for this.
 */
@Injectable()
export class PublishService {
  private readonly logger = new Logger(PublishService.name);
  private readonly limits: PublishingLimits;
  private readonly batches: Batcher<WithId, Published | Undecided>;
  private readonly requestsUnderWay = new RequestsUnderWay();
  private readonly newId: () => string;

  constructor(
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly holdRule: HoldRule,
    private readonly postgres: Postgres,
    private readonly partitions: PartitionKeeper,
    private readonly handOver: HandOver,
    private readonly ledgerClock: LedgerClock,
    private readonly reporter: PublicationReporter,
    { settings }: Config,
  ) {
    this.newId = notificationIds(() => ledgerClock.now());
    this.limits = publishingLimits(settings.DATABASE_TIMEOUT * 1000);
    this.batches = new Batcher((batch, begunAt) => this.acceptTogether(batch, begunAt), {
      ...batching,
      ...this.limits,
      bytesOf: (item) => this.bytesOf(item),
    });
  }

  /**
   * Resolves once the notification and its deliveries are committed, or it is known that its key belongs to another
   * request.
   * @throws {UnavailableProblem} when they could not be committed; the publisher should repeat
   * @throws {ValidationProblem} when a value cannot be stored
   * @throws {IdempotencyKeyInFlight}
   */
  async publish(publication: Publication): Promise<Published> {
    const { request } = publication.terms;
    const { span } = publication.trace;
    const item = { id: this.newId(), ...publication }; // the id first: V8 copies what is behind it in a tenth of the time
    const commit = span?.begin('commit');
    try {
      const published = request
        ? await this.requestsUnderWay.run(request, () => this.untilDecided(item))
        : await this.untilDecided(item);
      commit?.end({ 'heraut.result': published.kind });
      return published;
    } catch (error) {
      commit?.end(undefined, 'not-stored');
      const which = { notificationId: item.id, ...span?.logFields };
      throw explainNotStored(error, { which, hasKey: request !== null }, this.logger);
    }
  }

  /**
   * The outcome of a request that cannot be carried out any more, and was before.
   * @throws {PermissionProblem} when its publisher may not publish any more
   * @throws {UnavailableProblem} when that is not known; the publisher should repeat
   * @throws {IdempotencyKeyInFlight}
   * @throws `refusal`, where it was not, or another one was under its key
   */
  async findRepeated(publication: RequestedPublication, refusal: Error): Promise<Replayed> {
    const { refusalNow, terms } = publication;
    const { request } = terms;
    try {
      return await this.requestsUnderWay.run(request, async () => {
        const notAllowed = refusalNow();
        if (notAllowed) throw notAllowed;
        const before = await findByKeyOrWait(this.postgres, request);
        if (before?.requestHash !== request.requestHash) throw refusal;
        return this.concludeRepeated(publication, before.id, before.isDuplicate);
      });
    } catch (error) {
      throw explainNotStored(error, { which: { key: request.key }, hasKey: true }, this.logger);
    }
  }

  private async untilDecided(item: WithId): Promise<Published> {
    for (let [failures, next] = [0, item]; ; next = { ...item, id: this.newId() }) {
      const published = await this.batches.add(next);
      if (published.kind !== 'undecided') return published;
      // Under a new id, because nothing may be committed under one that is old: see src/ledger/horizon.ts.
      // Once more, and not for ever: the publisher is told what keeps the ledger from deciding.
      if (published.error !== undefined && ++failures > 1) throw published.error;
    }
  }

  /** In characters of its text, and by its deliveries; the rest of a publication is small. */
  private bytesOf({ channel, characteristics, body }: WithId): number {
    return body.length + bytesOfDelivery * this.subscriptions.match(channel, characteristics).length;
  }

  private async acceptTogether(batch: readonly WithId[], begunAt: number): Promise<(Published | Undecided)[]> {
    const { accepted, acceptance, way } = await this.commit(batch, this.deadline(begunAt));
    this.send(accepted, acceptance, way);
    return batch.map((item, nr) => this.conclude(item, accepted[nr]!, acceptance.decisions[nr]!));
  }

  private deadline(begunAt: number): Deadline {
    const passesAt = begunAt + this.limits.beginWithinMs;
    const now = performance.now();
    return { at: this.ledgerClock.now() + passesAt - now, hasPassed: () => performance.now() > passesAt };
  }

  private async commit(
    batch: readonly WithId[],
    deadline: Deadline,
  ): Promise<{ accepted: Accepted[]; acceptance: Acceptance; way: Way }> {
    for (;;) {
      const { version } = this.catalogue;
      const accepted = batch.map((item) => this.match(item));
      const way = this.handOver.wayFor(accepted);
      const acceptance = await this.write(accepted, version, way, deadline);
      if (acceptance.version === version) return { accepted, acceptance, way };
      way.giveUp();
      await this.catalogue.reach(acceptance.version, version);
    }
  }

  private async write(
    accepted: readonly Accepted[],
    version: number,
    way: Way,
    deadline: Deadline,
  ): Promise<Acceptance> {
    try {
      return await this.partitions.withPartitions(() =>
        accept(this.postgres, version, accepted, way.destination, deadline),
      );
    } catch (error) {
      way.giveUp();
      throw error;
    }
  }

  /** @throws {ProblemError} as `matchNow`; the batch fails, and is then repeated item by item */
  private match(item: WithId): Accepted {
    const { subscriptionIds, inOrder, terms } = matchNow(item, this.subscriptions);
    const heldFor = this.heldFor(subscriptionIds);
    const { id, channel, publisher, body, trace } = item;
    const { traceParent = null } = trace;
    return { id, channel, publisher, body, traceParent, subscriptionIds, heldFor, inOrder, ...terms };
  }

  /** Those that may not be sent now. They are committed as held. */
  private heldFor(subscriptionIds: readonly string[]): ReadonlyMap<string, HeldReason> {
    if (this.holdRule.isQuiet && !this.subscriptions.isAnyRestrained) return none; // nearly always
    let heldFor: Map<string, HeldReason> | undefined;
    for (const id of subscriptionIds) {
      const reason = this.holdRule.onAcceptance(this.subscriptions.find(id)!);
      if (reason) (heldFor ??= new Map()).set(id, reason);
    }
    return heldFor ?? none;
  }

  private send(accepted: readonly Accepted[], { version, queuedAt, decisions }: Acceptance, way: Way): void {
    const forNow = accepted.flatMap((item, nr) => deliveriesForNow(item, decisions[nr]!));
    if (forNow.length > 0) way.go(forNow, version, queuedAt);
    else way.giveUp();
  }

  /** Tells of a publication, and what to answer. */
  private conclude(item: WithId, accepted: Accepted, decision: Decision): Published | Undecided {
    switch (decision.kind) {
      case 'undecided':
        return decision;
      case 'accepted': {
        const isTooOld = decision.handedTo === 'nobody';
        this.reporter.accepted(item, accepted, isTooOld);
        return { kind: 'accepted', id: item.id, deliveries: accepted.subscriptionIds.length, isTooOld };
      }
      case 'duplicate':
        this.reporter.duplicate(item, decision.notificationId);
        return { kind: 'duplicate', id: decision.notificationId };
      case 'repeated':
        // Not told: where a PUT with other content replaces it, ReplaceScheduledService tells of that.
        if (decision.requestHash !== item.terms.request!.requestHash)
          return { kind: 'mismatch', id: decision.notificationId };
        return this.concludeRepeated(item, decision.notificationId, decision.isDuplicate);
    }
  }

  private concludeRepeated(publication: Publication, id: string, isDuplicate: boolean): Replayed {
    this.reporter.replayed(publication, id);
    return { kind: 'replayed', id, isDuplicate };
  }
}
