import { Body, Controller, Post, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Application } from '../auth/application.js';
import { CurrentApplication, RequireScope } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { parseNotification, type ParseResult } from './parse-notification.js';
import { PublishService } from './publish.service.js';

@Controller('/api/v1/notificaties')
export class NotificatiesController {
  private readonly leewaySeconds: number;

  constructor(
    private readonly publishing: PublishService,
    private readonly channels: ChannelDirectory,
    private readonly catalogue: Catalogue,
    private readonly clock: Clock,
    { settings }: Config,
  ) {
    this.leewaySeconds = settings.TIME_LEEWAY;
  }

  /** Answers with the notification as it was understood; its id goes out in a header, so that the body stays the standard's. */
  @Post()
  @RequireScope(scopes.publish)
  async create(
    @Body() raw: JsonObject,
    @CurrentApplication() application: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    let result = this.parse(raw);
    if (result.kind === 'invalid' && result.dependsOnChannels) {
      // Another process may just have made or changed the channel.
      await this.catalogue.refresh();
      result = this.parse(raw);
    }
    if (result.kind === 'invalid') throw new ValidationProblem(result.invalidParams);
    const { notification } = result;
    const id = await this.publishing.publish({ ...notification, publisher: application.clientId });
    void reply.header('notification-id', id).header('content-type', 'application/json; charset=utf-8');
    return notification.body;
  }

  private parse(raw: JsonObject): ParseResult {
    return parseNotification(raw, {
      findChannel: (name) => this.channels.find(name),
      now: this.clock.now(),
      leewaySeconds: this.leewaySeconds,
    });
  }
}
