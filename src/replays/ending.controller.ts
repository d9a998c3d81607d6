import { Body, Controller, Post } from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type * as z from 'zod';
import { NeedsUserRole, RequireSuperuser } from '../auth/auth.decorators.js';
import type { Selection } from '../deliveries/selection.js';
import { checkInput } from '../infra/http/check-input.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { cancelInput, checkFits, closeInput, replayOutput, replayToShow } from './replays-io.js';
import { Replays } from './replays.service.js';

const created = {
  409: '`selection-not-confirmed`: `confirm` is needed, or is not what the selection means now; `detail` has the count.',
};

/** Ends the deliveries of a selection, as a replay sends them: in steps, by a dispatcher. */
@ApiTags('deliveries')
@ApiBearerAuth()
@RequireSuperuser()
@Controller('admin/v1/deliveries')
export class EndingController {
  constructor(private readonly replays: Replays) {}

  @Post('cancel')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'deliveries_cancel',
    summary: 'Cancels the unfinished deliveries of a selection.',
    description: 'How far it is: `GET /admin/v1/replays/{id}`. A call that is in flight is not stopped.',
    body: cancelInput,
    status: 201,
    answer: replayOutput,
    problems: created,
  })
  async cancel(@Body() body: unknown): Promise<z.output<typeof replayOutput>> {
    return this.create('cancel', checkInput(cancelInput, body));
  }

  @Post('close')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'deliveries_close',
    summary: 'Closes the dead letters of a selection: nobody has to look at them any more.',
    description:
      'They become `cancelled`, keep what they failed of, and can still be sent again. How far it is: `GET /admin/v1/replays/{id}`.',
    body: closeInput,
    status: 201,
    answer: replayOutput,
    problems: created,
  })
  async close(@Body() body: unknown): Promise<z.output<typeof replayOutput>> {
    return this.create('close', checkInput(closeInput, body));
  }

  private async create(
    kind: 'cancel' | 'close',
    { selection, confirm, note }: { selection: Selection; confirm?: number; note?: string },
  ): Promise<z.output<typeof replayOutput>> {
    checkFits(kind, selection, true);
    const whole = { ratePerSecond: null, onlyMissed: true, startAt: undefined, stopAt: undefined };
    return replayToShow(await this.replays.create({ kind, selection, confirm, note, ...whole }));
  }
}
