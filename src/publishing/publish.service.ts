import { Injectable, Logger } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Enqueuer, refusedDelayMs } from '../enqueueing/enqueuer.service.js';
import { Batcher } from '../infra/batcher.js';
import { RequestsUnderWay } from '../infra/http/idempotency-key.js';
import { ProblemError, UnavailableProblem, ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { isDataError, isDoubledRow } from '../infra/postgres/postgres-errors.js';
import type { OnceKey, Verdict } from '../ledger/accept-on-terms.js';
import type { Accepted, HandOut } from '../ledger/accepted.js';
import { longestTravellingBody } from '../ledger/delivery.js';
import { Ledger } from '../ledger/ledger.service.js';
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
  /** Its content was published just now: any number of the same may ask for it together. */
  isContentTaken?: boolean;
}

/** Not decided: it was not its turn. */
interface Again {
  kind: 'again';
  isContentTaken: boolean;
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
  private readonly acceptingOnTerms = new Batcher<NumberedOnTerms, Published | Again>(
    (batch) => this.acceptTogetherOnTerms(batch),
    { ...batching, isolate: (error) => isDataError(error) || isDoubledRow(error) },
  );
  private readonly requestsUnderWay = new RequestsUnderWay();

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
      const work = () => this.acceptOnTerms({ ...publication, terms, id });
      if (!terms.request) return await work();
      const { operation, key } = terms.request;
      return await this.requestsUnderWay.run(publication.publisher, operation, key, work);
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
        const content = { channel, body, notBefore, expiresAt, subscriptionIds };
        const replaced = await this.ledger.replaceScheduled(version, {
          application: publisher,
          ...request,
          ...content,
        });
        if (replaced.kind === 'replaced') {
          publicationsCounted.inc({ channel, result: 'replaced' });
          const deliveries = subscriptionIds.length;
          this.logger.log({
            event: 'notification.replaced',
            notificationId: replaced.id,
            channel,
            publisher,
            deliveries,
          });
        }
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

  private async acceptOnTerms(item: NumberedOnTerms): Promise<Published> {
    for (;;) {
      const published = await this.acceptingOnTerms.add(item);
      if (published.kind !== 'again') return published;
      item = { ...item, isContentTaken: published.isContentTaken };
    }
  }

  /**
   * One statement takes a key once. So of those with the same content one goes first, and the others ask again: together
   * then, for what is taken they only look at.
   */
  private async acceptTogetherOnTerms(batch: NumberedOnTerms[]): Promise<(Published | Again)[]> {
    const firsts = new Map<string, NumberedOnTerms>();
    for (const item of batch) {
      const key = item.terms.content?.key;
      if (key !== undefined && !item.isContentTaken && !firsts.has(key)) firsts.set(key, item);
    }
    const firstOf = ({ terms }: NumberedOnTerms) => terms.content && firsts.get(terms.content.key);
    const now = batch.filter((item) => (firstOf(item) ?? item) === item);
    const handOut = this.handOut();
    const { accepted, verdicts, version, queuedAt } = await this.commitOnTerms(now, handOut);
    const forQueue = accepted.filter((_, index) => isForQueue(verdicts[index]!));
    if (handOut.state === 'queued') this.enqueue(forQueue, version, queuedAt);
    const verdictOn = new Map(now.map((item, index) => [item, verdicts[index]!]));
    const published = new Map(
      now.map((item, index) => [item, this.conclude(item, accepted[index]!, verdicts[index]!)] as const),
    );
    return batch.map((item): Published | Again => {
      const isContentTaken = isContentTakenAfter(verdictOn.get(firstOf(item) ?? item)!);
      return published.get(item) ?? { kind: 'again', isContentTaken };
    });
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

  private conclude(item: NumberedOnTerms, accepted: Accepted, verdict: Verdict): Published | Again {
    switch (verdict.kind) {
      case 'accepted':
        return this.reportAccepted(accepted, verdict.handedTo === 'nobody' ? 'expired' : 'accepted');
      case 'again':
        return { kind: 'again', isContentTaken: false };
      case 'met':
        return this.concludeMet(item, verdict);
    }
  }

  private concludeMet(
    { channel, publisher, terms }: NumberedOnTerms,
    { operation, resultId: id, requestHash, isDuplicate }: Verdict & { kind: 'met' },
  ): Published {
    if (operation === 'deduplicate') {
      publicationsCounted.inc({ channel, result: 'duplicate' });
      this.logger.log({ event: 'notification.duplicate', duplicateOf: id, channel, publisher });
      return { kind: 'duplicate', id };
    }
    // A PUT with other content may replace; then that is what is counted.
    if (requestHash !== terms.request!.requestHash) return { kind: 'mismatch', id };
    publicationsCounted.inc({ channel, result: 'replayed' });
    this.logger.log({ event: 'notification.replayed', notificationId: id, channel, publisher });
    return { kind: 'replayed', id, isDuplicate };
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

/** After a verdict on the first one with some content. A request of its own that was met says nothing of the content. */
const isContentTakenAfter = (verdict: Verdict): boolean =>
  verdict.kind === 'accepted' || (verdict.kind === 'met' && verdict.operation === 'deduplicate');

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
