import { Body, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { Tracing } from '../telemetry/tracing.js';
import { notificatieSchema, putHeaders } from './notificatie.js';
import { PublicationRequests, type CarriedOut } from './publication-requests.service.js';
import { inTrace } from './publication-trace.js';

const publishedOutput = z
  .strictObject({
    id: z
      .uuid()
      .describe('Receivers get it as `webhook-id`. Of a duplicate: that of the notification that was accepted before.'),
    duplicateOf: z
      .uuid()
      .nullable()
      .describe('A notification with the same content by the rules of the channel; this one is not sent.'),
    deliveryCount: z
      .int()
      .nullable()
      .describe('Subscriptions that it matched; 0: nobody asked for it. null: nothing was accepted now.'),
    isTooOld: z.boolean().describe('Older than its channel allows: kept, and sent to nobody.'),
    body: z.string().describe('The exact text that receivers get.'),
  })
  .meta({ id: 'PublishedNotification' });

/** Publishing by a person: the request of a publisher, with the answer of this API. */
@AdminController('notifications', 'notifications')
export class PublishByHandController {
  constructor(
    private readonly requests: PublicationRequests,
    private readonly tracing: Tracing,
  ) {}

  @Post()
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'notification_publish',
    summary: 'Publish a notification by hand.',
    description:
      'As `POST /api/v1/notificaties` does, with the same body, checks, headers and rules of its channel. The caller is its publisher. The answer comes when it is stored for every subscription that matches.',
    headers: putHeaders,
    isIdempotent: true,
    body: notificatieSchema,
    status: 201,
    answer: publishedOutput,
  })
  publish(
    @Body() raw: JsonObject,
    @Req() request: FastifyRequest,
    @CurrentApplication() caller: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.output<typeof publishedOutput>> {
    return inTrace(this.tracing.tracer, request, reply, async (trace) => {
      const carriedOut = await this.requests.publish({ raw, request, caller, requirement: 'superuser', trace });
      if (carriedOut.published.kind === 'replayed') void reply.header('idempotent-replayed', 'true');
      return toShow(carriedOut);
    });
  }
}

function toShow({ published, body }: CarriedOut): z.output<typeof publishedOutput> {
  const { kind, id } = published;
  const isDuplicate = kind === 'duplicate' || (kind === 'replayed' && published.isDuplicate);
  return {
    id,
    duplicateOf: isDuplicate ? id : null,
    deliveryCount: kind === 'accepted' ? published.deliveries : null,
    isTooOld: kind === 'accepted' && published.isTooOld,
    body,
  };
}
