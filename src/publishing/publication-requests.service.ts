import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Application } from '../auth/application.js';
import { Authorization, type Requirement } from '../auth/authorization.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { IdempotencyKeyReused, isRequestKey, readIdempotencyKey } from '../request-keys/idempotency-key.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { ConflictProblem, ValidationProblem } from '../infra/http/problem.js';
import type { OnceKey } from '../ledger/once-key.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { MisfitProblem, PublicationReader } from './publication-reader.service.js';
import { noSuchChannel, type Misfit, type ParsedNotification } from './parse-notification.js';
import type { PublicationTrace } from './publication-trace.js';
import type { Publication, Published, Terms } from './publication.js';
import { PublishService } from './publish.service.js';
import { ReplaceScheduledService } from './replace-scheduled.service.js';
import { readDeliverAfter } from './request-terms.js';
import { requestHashOf, termsOf, untilPast, type Asked } from './terms.js';

interface PublicationRequest {
  /** Its body. */
  raw: JsonObject;
  /** Its headers say on which terms it is published. */
  request: FastifyRequest;
  /** The application that sent it, or the one that stands for the user who did. */
  caller: Application;
  /** By which the caller was admitted. */
  requirement: Requirement;
  trace: PublicationTrace;
}

type RequestName = Pick<OnceKey, 'application' | 'operation' | 'key'>;

/** The outcome of a request: `body` is the exact text that receivers get. */
export interface CarriedOut {
  published:
    | Exclude<Published, { kind: 'mismatch' }>
    /** `isDuplicate`: with content that was published before, as notification `id`; the replaced one is not sent. */
    | { kind: 'replaced'; id: string; isDuplicate: boolean };
  body: string;
}

/**
 * Requests to publish: what is asked for by body and headers, checked and carried out, whoever asks, and by either API.
 */
@Injectable()
export class PublicationRequests {
  private readonly settings: Settings;

  constructor(
    private readonly publishing: PublishService,
    private readonly replacing: ReplaceScheduledService,
    private readonly reader: PublicationReader,
    private readonly channels: ChannelDirectory,
    private readonly authorization: Authorization,
    private readonly ledgerClock: LedgerClock,
    { settings }: Config,
  ) {
    this.settings = settings;
  }

  /**
   * @throws {ValidationProblem} when body or headers are not valid
   * @throws {IdempotencyKeyReused}
   * @throws the errors of `PublishService.publish`
   */
  async publish(asked: PublicationRequest): Promise<CarriedOut> {
    const { request, caller } = asked;
    const key = readIdempotencyKey(request);
    const notBefore = readDeliverAfter(request.headers['deliver-after'], this.ledgerClock.now());
    const named =
      key === undefined ? undefined : ({ application: caller.clientId, operation: 'publish', key } as const);
    const read = await this.readOrFind(asked, named, notBefore);
    if ('published' in read) return read;
    const { notification } = read;
    const requestKey = named ? this.requestKey(named, notification, notBefore) : null;
    const now = this.ledgerClock.now();
    const soonPast = notBefore === null || notBefore <= now ? untilPast(notification, now) : null;
    const terms = this.terms(notification, {
      request: requestKey,
      notBefore: soonPast ?? notBefore,
      keepsPlace: soonPast !== null,
    });
    const publication = this.publicationOf(asked, notification, terms);
    const published = await this.publishOrFind(publication);
    if (published.kind === 'mismatch') throw new IdempotencyKeyReused();
    return { published, body: notification.body };
  }

  /**
   * Under a key of the publisher's: once, and replaceable as long as it waits for its time.
   * @throws {ConflictProblem} when it was sent, with other content
   * @throws the errors of `publish`
   */
  async publishUnder(key: string, asked: PublicationRequest): Promise<CarriedOut> {
    const { request, caller } = asked;
    if (!isRequestKey(key)) {
      const reason = 'Must be 1 to 255 printable ASCII characters.';
      throw new ValidationProblem([{ name: 'key', code: 'invalid', reason }]);
    }
    const notBefore = readDeliverAfter(request.headers['deliver-after'], this.ledgerClock.now());
    const named = { application: caller.clientId, operation: 'put', key } as const;
    const read = await this.readOrFind(asked, named, notBefore);
    if ('published' in read) return read;
    const { notification } = read;
    const requestKey = this.requestKey(named, notification, notBefore);
    const isReplaceable = notBefore !== null && notBefore > this.ledgerClock.now();
    const { body } = notification;
    // Not `untilPast`: while it waited it could be replaced, although others were left out as its duplicates.
    const { terms, termsNow } = this.terms(notification, { request: requestKey, notBefore, isReplaceable });
    const own = { terms: { ...terms, request: requestKey }, termsNow };
    const publication = this.publicationOf(asked, notification, own);
    const published = await this.publishOrFind(publication);
    if (published.kind !== 'mismatch') return { published, body };
    const replaced = await this.replacing.replace(publication);
    if (replaced.kind === 'sent')
      throw new ConflictProblem('notification-sent', 'The notification of this key was sent, with other content.');
    const isDuplicate = replaced.kind === 'duplicate';
    return { published: { kind: 'replaced', id: replaced.notificationId, isDuplicate }, body };
  }

  /**
   * Reads the request; or finds its outcome, where it was carried out before, and only its channel was changed since,
   * or removed: the publisher, who repeats it because no answer came, would take a 400 to mean that the notification
   * was never sent.
   */
  private async readOrFind(
    asked: PublicationRequest,
    named: RequestName | undefined,
    notBefore: number | null,
  ): Promise<{ notification: ParsedNotification } | CarriedOut> {
    try {
      return { notification: await this.reader.read(asked.raw) };
    } catch (error) {
      if (!(error instanceof MisfitProblem) || !named) throw error;
      const { notification } = error;
      const request = this.requestKey(named, notification, notBefore);
      const terms = { request, content: null, notBefore, keepsPlace: false, expiresAt: null };
      const publication = this.publicationOf(asked, notification, { terms });
      return { published: await this.publishing.findRepeated(publication, error), body: notification.body };
    }
  }

  /** As `readOrFind`, where the channel was removed after it was read. */
  private async publishOrFind(publication: Publication): Promise<Published> {
    try {
      return await this.publishing.publish(publication);
    } catch (error) {
      const { terms } = publication;
      if (!(error instanceof MisfitProblem) || !terms.request) throw error;
      return this.publishing.findRepeated({ ...publication, terms: { ...terms, request: terms.request } }, error);
    }
  }

  private publicationOf<Own extends Pick<Publication, 'terms' | 'termsNow'>>(
    { request, caller, requirement, trace }: PublicationRequest,
    { channel, characteristics, hoofdObject, body }: Misfit,
    own: Own,
  ): Omit<Publication, keyof Own> & Own {
    return {
      channel: channel.name,
      characteristics,
      hoofdObject,
      body,
      publisher: caller.clientId,
      refusalNow: () => this.authorization.refusalNow(request, caller, requirement),
      ...own,
      trace,
    };
  }

  private terms(notification: ParsedNotification, asked: Asked): Pick<Publication, 'terms' | 'termsNow'> {
    const terms = termsOf(notification, asked);
    const termsNow = (): Terms => {
      const channel = this.channels.find(notification.channel.name);
      if (!channel) throw new MisfitProblem([noSuchChannel], notification);
      return channel === notification.channel ? terms : termsOf({ ...notification, channel }, asked);
    };
    return { terms, termsNow };
  }

  private requestKey(key: RequestName, notification: Misfit, notBefore: number | null): OnceKey {
    const requestHash = requestHashOf(notification, notBefore);
    // Counted from when it is sent: as long as it waits, its key must be known for repetitions and replacements.
    const waitsSeconds = Math.max(0, Math.ceil(((notBefore ?? 0) - this.ledgerClock.now()) / 1000));
    return { ...key, requestHash, keepSeconds: waitsSeconds + this.settings.IDEMPOTENCY_KEY_TTL_SEC };
  }
}
