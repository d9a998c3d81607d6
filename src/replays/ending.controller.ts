import { Body, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import type { Selection } from '../deliveries/selection.js';
import { CreationRequests } from '../request-keys/creation-requests.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { createReplay } from './create-replay.js';
import { cancelInput, closeInput, replayOutput } from './replays-io.js';
import { Replays } from './replays.service.js';

type Shown = z.output<typeof replayOutput>;

const created = {
  409: '`selection-not-confirmed`: `confirm` is needed, or is not what the selection means now; `detail` has the count.',
};

/** Ends the deliveries of a selection, as a replay sends them: in steps, by a dispatcher. */
@AdminController('deliveries', 'deliveries')
export class EndingController {
  constructor(
    private readonly replays: Replays,
    private readonly requests: CreationRequests,
  ) {}

  @Post('cancel')
  @NeedsUserRole('operator')
  @ReadsMuch()
  @AdminOperation({
    id: 'deliveries_cancel',
    summary: 'Cancels the unfinished deliveries of a selection.',
    description: 'How far it is: `GET /admin/v1/replays/{id}`. A call that is in flight is not stopped.',
    body: cancelInput,
    isIdempotent: true,
    status: 201,
    answer: replayOutput,
    problems: created,
  })
  async cancel(
    @Body() body: unknown,
    @CurrentApplication() caller: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    return this.create('cancel', checkInput(cancelInput, body), { caller, request, reply });
  }

  @Post('close')
  @NeedsUserRole('operator')
  @ReadsMuch()
  @AdminOperation({
    id: 'deliveries_close',
    summary: 'Closes the dead letters of a selection: nobody has to look at them any more.',
    description:
      'They become `cancelled`, and keep what they failed of. They can be sent again as long as their bodies are kept, which is no longer than retention says: a dead letter keeps its body for a week more. How far it is: `GET /admin/v1/replays/{id}`.',
    body: closeInput,
    isIdempotent: true,
    status: 201,
    answer: replayOutput,
    problems: created,
  })
  async close(
    @Body() body: unknown,
    @CurrentApplication() caller: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    return this.create('close', checkInput(closeInput, body), { caller, request, reply });
  }

  private async create(
    kind: 'cancel' | 'close',
    input: { selection: Selection; confirm?: number; note?: string },
    { caller, request, reply }: { caller: Application; request: FastifyRequest; reply: FastifyReply },
  ): Promise<Shown> {
    const { selection, confirm, note } = input;
    const whole = { ratePerSecond: null, onlyMissed: true, startAt: undefined, stopAt: undefined };
    const wanted = { kind, selection, confirm, note, ...whole };
    const asked = { application: caller.clientId, operation: `${kind}-deliveries`, input } as const;
    return createReplay({ replays: this.replays, requests: this.requests }, { request, reply }, asked, wanted);
  }
}
