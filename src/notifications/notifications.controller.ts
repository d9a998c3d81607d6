import { Get, Param, Query } from '@nestjs/common';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { boundedDescription } from '../deliveries/search-query.js';
import { checkInput } from '../infra/http/check-input.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { refuseAway, whileAway } from '../ledger/refuse-away.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { notificationOutput, notificationPageOutput, notificationToShow, pageToShow } from './notification-output.js';
import { NotificationReader } from './notification-reader.service.js';
import { notificationQuery, notificationsQuery, toCriteria } from './notifications-query.js';

@AdminController('notifications', 'notifications')
export class NotificationsController {
  constructor(
    private readonly reader: NotificationReader,
    private readonly postgres: Postgres,
  ) {}

  @Get()
  @ReadsMuch()
  @AdminOperation({
    id: 'notification_list',
    summary: 'Notifications, the newest first.',
    description: `${boundedDescription} With parameters about deliveries: those that have one delivery which meets all of them.`,
    query: notificationsQuery,
    status: 200,
    answer: notificationPageOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<ReturnType<typeof pageToShow>> {
    const { limit = 50, cursor, ...search } = checkInput(notificationsQuery, query);
    return pageToShow(await this.reader.list(toCriteria(search), cursor, limit));
  }

  @Get(':id')
  @ReadsMuch()
  @AdminOperation({
    id: 'notification_read',
    summary: 'One notification: what was sent, to whom, what came of it, and what happened in which order.',
    query: notificationQuery,
    status: 200,
    answer: notificationOutput,
    problems: { 404: 'There is no such notification, or it is older than the retention.', ...whileAway },
  })
  async read(
    @Param('id', ResourceId) id: string,
    @Query() query: Record<string, string>,
  ): Promise<ReturnType<typeof notificationToShow>> {
    const { limit = 50, cursor } = checkInput(notificationQuery, query);
    let found = await this.reader.find(id, cursor, limit);
    // Its deliveries leave before it does: it would be said to have matched nobody.
    if (!found || found.deliveryCount.count === 0) {
      await refuseAway(this.postgres, id);
      // Its day may have been put back between the two.
      found = await this.reader.find(id, cursor, limit);
    }
    if (!found) throw new NotFoundProblem('There is no such notification.');
    return notificationToShow(found);
  }
}
