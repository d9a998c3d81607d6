import { Body, Controller, Param, Post, Put, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Application } from '../auth/application.js';
import { CurrentApplication } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { Config } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { IdempotencyKeyReused, isRequestKey, readIdempotencyKey } from '../idempotency/idempotency-key.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { ConflictProblem, ValidationProblem } from '../infra/http/problem.js';
import type { OnceKey } from '../ledger/once-key.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { createdHeaders, keyPath, notificatieSchema, postHeaders, putHeaders, repeatedHeaders } from './notificatie.js';
import { NotificationReader } from './notification-reader.service.js';
import type { ParsedNotification } from './parse-notification.js';
import type { Published } from './publication.js';
import { PublishService } from './publish.service.js';
import { ReplaceScheduledService } from './replace-scheduled.service.js';
import { readDeliverAfter } from './request-terms.js';
import { requestHashOf, termsOf } from './terms.js';

@Controller(`${apiPath}/notificaties`)
export class NotificatiesController {
  private readonly settings: Settings;

  constructor(
    private readonly publishing: PublishService,
    private readonly replacing: ReplaceScheduledService,
    private readonly reader: NotificationReader,
    private readonly heartbeat: Heartbeat,
    { settings }: Config,
  ) {
    this.settings = settings;
  }

  /** Answers with the notification as it is sent; all else goes into headers, so that the body is that of the standard. */
  @Post()
  @NrcOperation({
    id: 'notificaties_create',
    tag: 'notificaties',
    summary: 'Publish a notificatie',
    description: 'The answer comes when it is stored for every abonnement that matches, and shows what receivers get.',
    scopes: [scopes.publish],
    headers: postHeaders,
    body: notificatieSchema,
    status: 201,
    answer: notificatieSchema,
    answerHeaders: repeatedHeaders,
    problems: [409, 422],
  })
  async create(
    @Body() raw: JsonObject,
    @Req() request: FastifyRequest,
    @CurrentApplication() application: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    const key = readIdempotencyKey(request);
    const notBefore = readDeliverAfter(request.headers['deliver-after'], this.heartbeat.ledgerNow());
    const notification = await this.reader.read(raw);
    const publisher = application.clientId;
    const requestKey =
      key === undefined
        ? null
        : this.requestKey({ application: publisher, operation: 'publish', key }, notification, notBefore);
    const terms = termsOf(notification, { request: requestKey, notBefore });
    const { channel, characteristics, hoofdObject, body } = notification;
    const publication = { channel: channel.name, characteristics, hoofdObject, body, publisher, terms };
    const published = await this.publishing.publish(publication);
    if (published.kind === 'mismatch') throw new IdempotencyKeyReused();
    return answer(reply, 201, published, body);
  }

  /** A notification under a key of the publisher's: created once, and replaceable as long as it waits for its time. */
  @Put(':key')
  @NrcOperation({
    id: 'notificaties_put',
    tag: 'notificaties',
    summary: 'Publish a notificatie under a key',
    description:
      'Once: the same content again changes nothing. Other content replaces it as long as the notificatie waits for its `Deliver-After`; afterwards it is refused with 409.',
    scopes: [scopes.publish],
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
  async put(
    @Param('key') key: string,
    @Body() raw: JsonObject,
    @Req() request: FastifyRequest,
    @CurrentApplication() application: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    if (!isRequestKey(key)) {
      const reason = 'Must be 1 to 255 printable ASCII characters.';
      throw new ValidationProblem([{ name: 'key', code: 'invalid', reason }]);
    }
    const notBefore = readDeliverAfter(request.headers['deliver-after'], this.heartbeat.ledgerNow());
    const notification = await this.reader.read(raw);
    const publisher = application.clientId;
    const requestKey = this.requestKey({ application: publisher, operation: 'put', key }, notification, notBefore);
    const isReplaceable = notBefore !== null && notBefore > this.heartbeat.ledgerNow();
    const terms = { ...termsOf(notification, { request: requestKey, notBefore, isReplaceable }), request: requestKey };
    const { channel, characteristics, hoofdObject, body } = notification;
    const publication = { channel: channel.name, characteristics, hoofdObject, body, publisher, terms };
    const published = await this.publishing.publish(publication);
    if (published.kind !== 'mismatch') return answer(reply, published.kind === 'replayed' ? 200 : 201, published, body);
    const replaced = await this.replacing.replace(publication);
    if (replaced.kind === 'replaced')
      return answer(reply, 200, { kind: 'accepted', id: replaced.notificationId }, body);
    throw new ConflictProblem('notification-sent', 'The notification of this key was sent, with other content.');
  }

  private requestKey(
    key: Pick<OnceKey, 'application' | 'operation' | 'key'>,
    notification: ParsedNotification,
    notBefore: number | null,
  ): OnceKey {
    const requestHash = requestHashOf(notification, notBefore);
    // Counted from when it is sent: as long as it waits, its key must be known for repetitions and replacements.
    const waitsSeconds = Math.max(0, Math.ceil(((notBefore ?? 0) - this.heartbeat.ledgerNow()) / 1000));
    return { ...key, requestHash, keepSeconds: waitsSeconds + this.settings.IDEMPOTENCY_KEY_TTL_SEC };
  }
}

function answer(
  reply: FastifyReply,
  status: 200 | 201,
  published: Exclude<Published, { kind: 'mismatch' }>,
  body: string,
): string {
  const { kind, id } = published;
  void reply.status(status).header('notification-id', id).header('content-type', 'application/json; charset=utf-8');
  if (kind === 'duplicate' || (kind === 'replayed' && published.isDuplicate)) void reply.header('duplicate-of', id);
  if (kind === 'replayed') void reply.header('idempotent-replayed', 'true');
  return body;
}
