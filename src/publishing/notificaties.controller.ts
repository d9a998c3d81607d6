import { Body, Controller, Param, Post, Put, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Application } from '../auth/application.js';
import { CurrentApplication } from '../auth/auth.decorators.js';
import { ChecksCallerAsItStores } from '../auth/authorization.guard.js';
import { scopes } from '../auth/scopes.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { Tracing } from '../telemetry/tracing.js';
import { createdHeaders, keyPath, notificatieSchema, postHeaders, putHeaders, repeatedHeaders } from './notificatie.js';
import { PublicationRequests, type CarriedOut } from './publication-requests.service.js';
import { inTrace } from './publication-trace.js';

/** The scopes of which a publisher needs one. */
export const toPublish = [scopes.publish] as const;

@ChecksCallerAsItStores(true)
@Controller(`${apiPath}/notificaties`)
export class NotificatiesController {
  constructor(
    private readonly requests: PublicationRequests,
    private readonly tracing: Tracing,
  ) {}

  /**
   * Answers with the notification as it is sent; all else goes into headers, so that the body is that of the standard.
   */
  @Post()
  @NrcOperation({
    id: 'notificaties_create',
    tag: 'notificaties',
    summary: 'Publish a notificatie',
    description: 'The answer comes when it is stored for every abonnement that matches, and shows what receivers get.',
    scopes: [...toPublish],
    headers: postHeaders,
    body: notificatieSchema,
    status: 201,
    answer: notificatieSchema,
    answerHeaders: repeatedHeaders,
    problems: [409, 422],
  })
  create(
    @Body() raw: JsonObject,
    @Req() request: FastifyRequest,
    @CurrentApplication() caller: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    return inTrace(this.tracing.tracer, request, reply, async (trace) =>
      answer(reply, 201, await this.requests.publish({ raw, request, caller, requirement: toPublish, trace })),
    );
  }

  /** A notification under a key of the publisher's: created once, and replaceable as long as it waits for its time. */
  @Put(':key')
  @NrcOperation({
    id: 'notificaties_put',
    tag: 'notificaties',
    summary: 'Publish a notificatie under a key',
    description:
      'Once: the same content again changes nothing. Other content replaces it as long as the notificatie waits for its `Deliver-After`; afterwards it is refused with 409.',
    scopes: [...toPublish],
    path: keyPath,
    headers: putHeaders,
    body: notificatieSchema,
    status: 201,
    answer: notificatieSchema,
    answerHeaders: createdHeaders,
    also: {
      200: {
        description: 'It was there: with the same content, or with other content that has been replaced.',
        headers: repeatedHeaders,
      },
    },
    problems: [409],
  })
  put(
    @Param('key') key: string,
    @Body() raw: JsonObject,
    @Req() request: FastifyRequest,
    @CurrentApplication() caller: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    return inTrace(this.tracing.tracer, request, reply, async (trace) => {
      const asked = { raw, request, caller, requirement: toPublish, trace };
      const carriedOut = await this.requests.publishUnder(key, asked);
      const { kind } = carriedOut.published;
      return answer(reply, kind === 'replayed' || kind === 'replaced' ? 200 : 201, carriedOut);
    });
  }
}

function answer(reply: FastifyReply, status: 200 | 201, { published, body }: CarriedOut): string {
  const { kind, id } = published;
  void reply.status(status).header('notification-id', id).header('content-type', 'application/json; charset=utf-8');
  if (kind === 'duplicate' || (kind !== 'accepted' && published.isDuplicate)) void reply.header('duplicate-of', id);
  if (kind === 'replayed') void reply.header('idempotent-replayed', 'true');
  return body;
}
