import { Injectable, Logger } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { replaceScheduled, type Replaced } from '../ledger/replace-scheduled.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { matchNow } from './match-now.js';
import { explainNotStored } from './not-stored.js';
import { PublicationReporter } from './publication-reporter.service.js';
import type { RequestedPublication } from './publication.js';

/** Puts other content under the key of a notification that is scheduled. */
@Injectable()
export class ReplaceScheduledService {
  private readonly logger = new Logger(ReplaceScheduledService.name);

  constructor(
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly postgres: Postgres,
    private readonly reporter: PublicationReporter,
  ) {}

  /**
   * Resolves once the new content is committed, or found to be a duplicate, or refused as `sent`: some delivery of the
   * former content may have been handed out.
   * @param publication its key is that of the notification that it replaces
   * @throws {PermissionProblem} when its publisher may not publish any more
   * @throws {UnavailableProblem} when it could not be stored; the publisher should repeat
   */
  async replace(publication: RequestedPublication): Promise<Exclude<Replaced, { kind: 'outdated' }>> {
    try {
      const { replaced, deliveries } = await this.commit(publication);
      if (replaced.kind === 'replaced') this.reporter.replaced(publication, replaced.notificationId, deliveries);
      else if (replaced.kind === 'duplicate')
        this.reporter.duplicate(publication, replaced.notificationId, replaced.withdrawnId);
      return replaced;
    } catch (error) {
      const which = { key: publication.terms.request.key };
      throw explainNotStored(error, { which, hasKey: true }, this.logger);
    }
  }

  /**
   * Matches with the catalogue in memory; the ledger refuses if that is no longer the latest, and matching is repeated.
   */
  private async commit(publication: RequestedPublication) {
    const { channel, body, trace } = publication;
    const { request } = publication.terms;
    for (;;) {
      const { version } = this.catalogue;
      const { subscriptionIds, inOrder, terms } = matchNow(publication, this.subscriptions);
      const { content, notBefore, expiresAt } = terms;
      const replacement = {
        request,
        content,
        channel,
        body,
        traceParent: trace.traceParent ?? null,
        notBefore,
        expiresAt,
        subscriptionIds,
        inOrder,
      };
      const replaced = await replaceScheduled(this.postgres, version, replacement);
      if (replaced.kind !== 'outdated') return { replaced, deliveries: subscriptionIds.length };
      await this.catalogue.reach(replaced.version, version);
    }
  }
}
