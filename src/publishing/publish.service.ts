import { Injectable, Logger } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Enqueuer, refusedDelayMs } from '../enqueueing/enqueuer.service.js';
import { Batcher } from '../infra/batcher.js';
import { IdempotencyKeyInFlight } from '../infra/http/idempotency-key.js';
import { ProblemError, UnavailableProblem, ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';
import type { OnceKey, Verdict } from '../ledger/accept-on-terms.js';
import { Ledger, longestTravellingBody, type Accepted, type HandOut } from '../ledger/ledger.service.js';
import type { Replaced } from '../ledger/replace-scheduled.js';
import type { QueuedDelivery } from '../queue/chunk.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Publication, Published, RequestKey, Terms } from './publication.js';
import { publicationsCounted } from './publishing.counters.js';

interface Numbered extends Publication {
  id: string;
}

interface NumberedOnTerms extends Numbered {
  terms: Terms;
}

const batching = { maxItems: 256, lingerMs: 2, concurrency: 2, isolate: isDataError };
const unavailableRetrySeconds = 2;

/**
 * Hot path, first half: accept → match → commit → enqueue. Publications that arrive together are committed together; each
 * caller is answered after the commit, and none waits for the queue.
 */
@Injectable()
export class PublishService {
  private readonly logger = new Logger(PublishService.name);
  private readonly accepting = new Batcher<Numbered, Published>((batch) => this.acceptTogether(batch), batching);
  private readonly acceptingOnTerms = new Batcher<NumberedOnTerms, Published>(
    (batch) => this.acceptTogetherOnTerms(batch),
    batching,
  );
  private readonly requestsUnderWay = new Set<string>();

  constructor(
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly ledger: Ledger,
    private readonly enqueuer: Enqueuer,
  ) {}

  /**
   * Resolves once the notification and its deliveries are committed, or were before.
   * @throws {UnavailableProblem} when they could not be; the publisher should repeat
   * @throws {IdempotencyKeyInFlight}
   */
  async publish(publication: Publication): Promise<Published> {
    const { terms } = publication;
    const id = uuidv7();
    try {
      if (!terms) return await this.accepting.add({ ...publication, id });
      const work = () => this.acceptingOnTerms.add({ ...publication, terms, id });
      return await (terms.request ? this.exclusively(publication.publisher, terms.request, work) : work());
    } catch (error) {
      throw this.explain(error, id);
    }
  }

  /** Puts other content under the key of a scheduled notification, as long as none of it was sent. */
  async replaceScheduled(publication: Publication & { terms: Terms & { request: RequestKey } }): Promise<Replaced> {
    const { publisher, terms, channel, body } = publication;
    const { request, notBefore = null, expiresAt = null } = terms;
    try {
      for (;;) {
        const { version } = this.catalogue;
        const { subscriptionIds } = this.match({ ...publication, id: '' });
        const { key, requestHash } = request;
        const content = { channel, body, notBefore, expiresAt, subscriptionIds };
        const replaced = await this.ledger.replaceScheduled(version, {
          application: publisher,
          key,
          requestHash,
          ...content,
        });
        if (replaced.kind !== 'outdated') return replaced;
        await this.catalogue.reach(replaced.version);
      }
    } catch (error) {
      throw this.explain(error, request.key);
    }
  }

  private async acceptTogether(batch: Numbered[]): Promise<Published[]> {
    const handOut = this.handOut();
    const { accepted, version, queuedAt } = await this.commit(batch, handOut);
    if (handOut.state === 'queued') this.enqueue(accepted, version, queuedAt);
    return accepted.map((item) => this.reportAccepted(item));
  }

  /** Matches with the catalogue in memory; the ledger refuses if that is no longer the latest, and matching is repeated. */
  private async commit(batch: Numbered[], handOut: HandOut) {
    for (;;) {
      const { version } = this.catalogue;
      const accepted = batch.map((item) => this.match(item));
      const found = await this.ledger.accept(version, accepted, handOut);
      if (found.version === version) return { accepted, version, queuedAt: found.queuedAt };
      await this.catalogue.reach(found.version);
    }
  }

  private async acceptTogetherOnTerms(batch: NumberedOnTerms[]): Promise<Published[]> {
    // One statement can take a key once: who comes second with the same key asks again when the first is through.
    const seen = new Set<string>();
    const isSecond = ({ terms }: NumberedOnTerms) =>
      terms.content !== undefined && seen.size === seen.add(terms.content.key).size;
    const seconds = new Set(batch.filter(isSecond));
    const firsts = batch.filter((item) => !seconds.has(item));
    const published = new Map<NumberedOnTerms, Published>();
    const handOut = this.handOut();
    const { accepted, verdicts, version, queuedAt } = await this.commitOnTerms(firsts, handOut);
    const forQueue = accepted.filter((_, index) => isForQueue(verdicts[index]!));
    if (handOut.state === 'queued') this.enqueue(forQueue, version, queuedAt);
    firsts.forEach((item, index) => published.set(item, this.conclude(item, accepted[index]!, verdicts[index]!)));
    if (seconds.size > 0) {
      const later = await this.acceptTogetherOnTerms([...seconds]);
      [...seconds].forEach((item, index) => published.set(item, later[index]!));
    }
    return batch.map((item) => published.get(item)!);
  }

  private async commitOnTerms(batch: NumberedOnTerms[], handOut: HandOut) {
    for (;;) {
      const { version } = this.catalogue;
      const accepted = batch.map((item) => ({
        ...this.match(item),
        keys: keysOf(item),
        notBefore: item.terms.notBefore ?? null,
        expiresAt: item.terms.expiresAt ?? null,
      }));
      const found = await this.ledger.acceptOnTerms(version, accepted, handOut);
      if (found.version === version) return { accepted, verdicts: found.verdicts, version, queuedAt: found.queuedAt };
      await this.catalogue.reach(found.version);
    }
  }

  private conclude(item: NumberedOnTerms, accepted: Accepted, verdict: Verdict): Published {
    if (verdict.kind === 'accepted')
      return this.reportAccepted(accepted, verdict.handedTo === 'nobody' ? 'expired' : 'accepted');
    const { operation, resultId: id, requestHash } = verdict;
    const { channel, publisher } = item;
    if (operation === 'deduplicate') {
      publicationsCounted.inc({ channel, result: 'duplicate' });
      this.logger.log({ event: 'notification.duplicate', duplicateOf: id, channel, publisher });
      return { kind: 'duplicate', id };
    }
    if (requestHash !== item.terms.request!.requestHash) return { kind: 'mismatch', id };
    publicationsCounted.inc({ channel, result: 'replayed' });
    this.logger.log({ event: 'notification.replayed', notificationId: id, channel, publisher });
    return { kind: 'replayed', id };
  }

  /** Of requests with the same key one is under way at a time; whoever asks meanwhile is told so. */
  private async exclusively<T>(publisher: string, { operation, key }: RequestKey, work: () => Promise<T>): Promise<T> {
    const name = `${operation}\n${publisher}\n${key}`;
    if (this.requestsUnderWay.has(name)) throw new IdempotencyKeyInFlight();
    this.requestsUnderWay.add(name);
    try {
      return await work();
    } finally {
      this.requestsUnderWay.delete(name);
    }
  }

  private match({ id, channel, publisher, body, characteristics }: Numbered): Accepted {
    const matched = this.subscriptions.match(channel, characteristics);
    return { id, channel, publisher, body, subscriptionIds: matched.map((subscription) => subscription.id) };
  }

  /** To the queue, unless it would refuse: then the dispatcher tries again in a moment. */
  private handOut(): HandOut {
    return this.enqueuer.isAccepting
      ? { state: 'queued', owner: this.enqueuer.owner }
      : { state: 'waiting', delayMs: refusedDelayMs };
  }

  private enqueue(accepted: Accepted[], version: number, queuedAt: number): void {
    void this.enqueuer.enqueue('due', accepted.flatMap(deliveriesOf), version, queuedAt);
  }

  private reportAccepted(accepted: Accepted, result: 'accepted' | 'expired' = 'accepted'): Published {
    const { id, channel, publisher, subscriptionIds } = accepted;
    publicationsCounted.inc({ channel, result });
    const deliveries = subscriptionIds.length;
    this.logger.log({ event: `notification.${result}`, notificationId: id, channel, publisher, deliveries });
    return { kind: 'accepted', id };
  }

  private explain(error: unknown, id: string): ProblemError {
    if (error instanceof ProblemError) return error;
    if (isDataError(error)) {
      this.logger.warn({ event: 'notification.refused', notificationId: id, error });
      const reason = 'The notification holds a value that cannot be stored.';
      return new ValidationProblem([{ name: wholeInput, code: 'invalid', reason }]);
    }
    this.logger.error({ event: 'notification.not-committed', notificationId: id, error });
    return new UnavailableProblem(
      'The notification could not be stored. Publish it again.',
      unavailableRetrySeconds,
      error,
    );
  }
}

const isForQueue = (verdict: Verdict): boolean => verdict.kind === 'accepted' && verdict.handedTo === 'queue';

function keysOf({ publisher, terms: { request, content } }: NumberedOnTerms): OnceKey[] {
  return [
    ...(request ? [{ ...request, application: publisher }] : []),
    ...(content ? [{ ...content, application: '', operation: 'deduplicate' as const, requestHash: null }] : []),
  ];
}

function deliveriesOf({
  id,
  body,
  subscriptionIds,
  expiresAt = null,
}: Accepted & { expiresAt?: number | null }): QueuedDelivery[] {
  const travelling = Buffer.byteLength(body) <= longestTravellingBody ? body : null;
  return subscriptionIds.map((subscriptionId) => ({
    notificationId: id,
    subscriptionId,
    generation: 1,
    attempts: 0,
    failures: 0,
    replays: 0,
    expiresAt,
    body: travelling,
  }));
}
