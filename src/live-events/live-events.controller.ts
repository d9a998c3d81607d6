import { Get, Headers, Logger, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { userOf } from '../auth/authorization.guard.js';
import { TokenWatch } from '../auth/token-watch.service.js';
import { UserSessions } from '../auth/user-sessions.js';
import { Answers } from '../infra/http/accept-json.guard.js';
import { checkInput } from '../infra/http/check-input.js';
import { uuid } from '../infra/http/input-parts.js';
import { deliveryStates } from '../ledger/delivery.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { endSoon } from './listener.js';
import { eventKinds } from './live-event.js';
import { mostTogether } from './live-events.service.js';
import { LiveListeners, mostListeners, mostOfOne } from './live-listeners.service.js';

const eventsQuery = z.strictObject({
  event: z.enum(eventKinds).optional().describe('Only events of this kind.'),
  channel: z
    .string()
    .min(1)
    .max(50)
    .optional()
    .describe(
      `Only what is about this channel. Dead letters that are told together are so by channel, except for those that a subscription leaves when it is disabled, and more than ${mostTogether} between two writes of a process: they are told without one.`,
    ),
  subscription: uuid().optional().describe('Only what is about this subscription.'),
  state: z
    .enum(deliveryStates)
    .optional()
    .describe('Only deliveries that are in this state after it; dead letters are `failed`, `expired` and `unknown`.'),
});

const eventsHeaders = z.object({
  'Last-Event-ID': z
    .string()
    .regex(/^\d{1,18}$/, 'Is not the id of an event.')
    .optional()
    .describe('The id of the last event that was got before: the stream goes on behind it.'),
});

const streamType = 'text/event-stream';

@AdminController('events', 'events')
export class LiveEventsController {
  private readonly logger = new Logger('LiveEvents');

  constructor(
    private readonly listeners: LiveListeners,
    private readonly sessions: UserSessions,
    private readonly tokens: TokenWatch,
  ) {}

  @Get()
  @Answers(streamType)
  @AdminOperation({
    id: 'event_stream',
    summary: 'Events of all processes, as they happen: a stream of server-sent events.',
    description: `Each event has an id, its kind, and a JSON object as data. They are kept for five minutes: a listener that lost its connection goes on with \`Last-Event-ID\` (an id comes at the start, and every 15 seconds, also without an event), and is told by \`events.missed\` where it missed some. The stream ends after an hour at most, when the process stops, and within seconds of the end of what it was opened with: the session of the user, or the secret or the right of the application. Each process has room for ${mostListeners} listeners, of one caller for ${mostOfOne}. It is a view, not a log: under load events are left out, which is told too.`,
    query: eventsQuery,
    headers: eventsHeaders,
    status: 200,
    answer: z.string(),
    mediaType: streamType,
  })
  async stream(
    @Query() query: Record<string, string>,
    @CurrentApplication() application: Application,
    @Headers('last-event-id') lastEventId: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const filter = checkInput(eventsQuery, query);
    const { 'Last-Event-ID': last } = checkInput(eventsHeaders, { 'Last-Event-ID': lastEventId });
    const place = await this.listeners.prepare(application.id);
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, {
      'content-type': streamType,
      'cache-control': 'no-store',
      // nginx would collect the events in a buffer.
      'x-accel-buffering': 'no',
    });
    if (request.method === 'HEAD') raw.end();
    // It left meanwhile: nothing would tell of that again, and its place would stay taken.
    if (request.method === 'HEAD' || raw.destroyed) return place.leave();
    raw.on('error', () => {}); // the connection is gone; `close` follows
    try {
      const end = () => endSoon(raw);
      const unwatch = userOf(request)
        ? this.sessions.watch(request, end)
        : this.tokens.add(request, application, 'superuser', end);
      raw.once('close', unwatch);
      raw.write('retry: 1000\n\n');
      await this.listeners.join(raw, filter, place, last === undefined ? undefined : BigInt(last));
    } catch (error) {
      // The answer has begun: all that can be done is to end it, and the listener comes back.
      this.logger.warn({ event: 'live-events.not-read', error });
      place.leave();
      raw.destroy();
    }
  }
}
