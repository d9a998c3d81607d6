import { Body, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { CreationRequests } from '../request-keys/creation-requests.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { createReplay } from './create-replay.js';
import {
  checkFits,
  dryRunInput,
  dryRunOutput,
  dryRunToShow,
  replayInput,
  replayOutput,
  replayPageOutput,
  replaysQuery,
  replaysToShow,
  replayToShow,
} from './replays-io.js';
import { Replays } from './replays.service.js';

type Shown = z.output<typeof replayOutput>;

const unknownReplay = {
  404: 'There is no such replay, or it ended longer ago than AUDIT_RETENTION_DAYS, and than IDEMPOTENCY_KEY_TTL_SEC.',
};
const endedReplay = { ...unknownReplay, 409: '`replay-ended`: it has ended.' };
const created = {
  409: '`selection-not-confirmed`: `confirm` is needed, or is not what the selection means now; `detail` has the count. `replay-under-way`: of everything for this subscription.',
};

@AdminController('replays', 'replays')
export class ReplaysController {
  constructor(
    private readonly replays: Replays,
    private readonly requests: CreationRequests,
    private readonly subscriptions: SubscriptionDirectory,
  ) {}

  @Get()
  @AdminOperation({
    id: 'replay_list',
    summary: 'Replays, cancellations and closings by selection, newest first.',
    query: replaysQuery,
    status: 200,
    answer: replayPageOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<z.output<typeof replayPageOutput>> {
    const { limit = 50, cursor, ...filter } = checkInput(replaysQuery, query);
    return replaysToShow(await this.replays.list({ ...filter, before: cursor }, limit + 1), limit);
  }

  @Post('dry-run')
  @NeedsUserRole('viewer')
  @ReadsMuch()
  @AdminOperation({
    id: 'replay_dry_run',
    summary: 'Counts the deliveries or notifications of a selection, and changes nothing.',
    description:
      'Looks at up to two million deliveries, or 200,000 notifications for `everythingFor`, and for up to four seconds; `searchedTo` says how far it came.',
    body: dryRunInput,
    status: 200,
    answer: dryRunOutput,
  })
  async dryRun(@Body() body: unknown): Promise<z.output<typeof dryRunOutput>> {
    const { kind, selection, onlyMissed } = checkInput(dryRunInput, body);
    checkFits(kind, selection, onlyMissed);
    return dryRunToShow(await this.replays.dryRun(kind, selection, onlyMissed), (id) => this.subscriptions.find(id));
  }

  @Post()
  @NeedsUserRole('operator')
  @ReadsMuch()
  @AdminOperation({
    id: 'replay_create',
    summary: 'Sends deliveries again, at a steady pace.',
    description:
      'As `retry` does with one. In the order in which the notifications were accepted; the pace, the order and the circuit breaker of each endpoint count as always. Deliveries that are not ended are never touched, and what is accepted after this request is not meant.',
    body: replayInput,
    isIdempotent: true,
    status: 201,
    answer: replayOutput,
    problems: created,
  })
  async create(
    @Body() body: unknown,
    @CurrentApplication() { clientId }: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    const input = checkInput(replayInput, body);
    const { startAt, stopAt, confirm, note } = input;
    const wanted = { ...input, kind: 'replay', startAt, stopAt, confirm, note } as const;
    const asked = { application: clientId, operation: 'create-replay', input } as const;
    return createReplay({ replays: this.replays, requests: this.requests }, { request, reply }, asked, wanted);
  }

  @Get(':id')
  @AdminOperation({
    id: 'replay_read',
    summary: 'How far a replay is.',
    status: 200,
    answer: replayOutput,
    problems: unknownReplay,
  })
  async read(@Param('id', ResourceId) id: string): Promise<Shown> {
    return replayToShow(await this.replays.get(id));
  }

  @Post(':id/pause')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'replay_pause',
    summary: 'Nothing more is sent until it is resumed.',
    description: 'Deliveries that it has sent already go on.',
    status: 200,
    answer: replayOutput,
    problems: endedReplay,
  })
  async pause(@Param('id', ResourceId) id: string): Promise<Shown> {
    return replayToShow(await this.replays.pause(id));
  }

  @Post(':id/resume')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'replay_resume',
    summary: 'Goes on where it was paused.',
    status: 200,
    answer: replayOutput,
    problems: endedReplay,
  })
  async resume(@Param('id', ResourceId) id: string): Promise<Shown> {
    return replayToShow(await this.replays.resume(id));
  }

  @Post(':id/cancel')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'replay_cancel',
    summary: 'Ends a replay where it is.',
    description: 'Deliveries that it has sent already go on: `POST /admin/v1/deliveries/cancel` ends that.',
    status: 200,
    answer: replayOutput,
    problems: endedReplay,
  })
  async cancel(@Param('id', ResourceId) id: string): Promise<Shown> {
    return replayToShow(await this.replays.cancel(id));
  }
}
