import { Body, Get, Param, Post, Query } from '@nestjs/common';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { checkInput } from '../infra/http/check-input.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { refuseAway, whileAway } from '../ledger/refuse-away.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { notificatieSchema } from '../publishing/notificatie.js';
import { DryRunService } from './dry-run.service.js';
import { dryRunOutput, dryRunToShow, explanationPageOutput, explanationPageToShow } from './explain-output.js';
import { explainQuery } from './explain-query.js';
import { ExplanationReader, type ExplanationPage } from './explanation-reader.service.js';

const start = { part: 'first', after: null } as const;

/** The subscriptions that get a notification, those that do not, and why. */
@AdminController('notifications')
export class ExplainController {
  constructor(
    private readonly reader: ExplanationReader,
    private readonly dryRun: DryRunService,
    private readonly postgres: Postgres,
  ) {}

  @Get('notifications/:notificationId/explanations')
  @ReadsMuch()
  @AdminOperation({
    id: 'notification_explain',
    summary: 'Why each subscription got a notification or did not, and where its delivery is.',
    description:
      'First those with a delivery, then the others that are, or were, about its channel; with `subscription`, that one, whatever it is about. Judged by what the subscription was when the notification was accepted, as far as the audit log tells. A publication that was answered with `Duplicate-Of` is not kept: ask for the notification that it names.',
    query: explainQuery,
    status: 200,
    answer: explanationPageOutput,
    problems: {
      404: 'There is no such notification or subscription, or it is older than the retention.',
      ...whileAway,
    },
  })
  async explain(
    @Param('notificationId', ResourceId) notificationId: string,
    @Query() query: Record<string, string>,
  ): Promise<ReturnType<typeof explanationPageToShow>> {
    const { subscription, limit = 50, cursor = start } = checkInput(explainQuery, query);
    const notification = await this.reader.findNotification(notificationId);
    let page: ExplanationPage | undefined;
    if (notification)
      page =
        subscription === undefined
          ? await this.reader.list(notification, cursor, limit)
          : await this.reader.only(notification, subscription);
    // Its deliveries leave before it does: each subscription would be said to have none.
    if (!page?.explanations.some(({ delivery }) => delivery)) await refuseAway(this.postgres, notificationId);
    if (!notification) throw new NotFoundProblem('There is no such notification.');
    if (!page) throw new NotFoundProblem('There is no such subscription.');
    return explanationPageToShow(notificationId, notification.channel, page);
  }

  @Post('explain')
  @NeedsUserRole('viewer')
  @ReadsMuch()
  @AdminOperation({
    id: 'notification_dry_run',
    summary:
      'The subscriptions that would get a notification, and those that would not, if it were published now. Nothing is sent or kept.',
    description:
      'The body is that of a publisher, checked as a publication is. First the subscriptions that would get it, then the others about its channel; with `subscription`, that one, whatever it is about.',
    query: explainQuery,
    body: notificatieSchema,
    status: 200,
    answer: dryRunOutput,
    problems: { 404: 'There is no such subscription.' },
  })
  async explainUnsent(
    @Body() raw: JsonObject,
    @Query() query: Record<string, string>,
  ): Promise<ReturnType<typeof dryRunToShow>> {
    const { subscription, limit = 50, cursor = start } = checkInput(explainQuery, query);
    const run = await this.dryRun.run(raw, { subscriptionId: subscription, from: cursor, limit });
    if (subscription !== undefined && run.forecasts.length === 0)
      throw new NotFoundProblem('There is no such subscription.');
    return dryRunToShow(run);
  }
}
