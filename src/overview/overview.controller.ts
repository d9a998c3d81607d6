import { Get, Headers, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { AdminController } from '../auth/auth.decorators.js';
import { namesTag } from '../infra/http/if-match.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { Overview } from './overview.service.js';
import { overviewAnswerHeaders, overviewHeaders, overviewOutput, type OverviewAnswer } from './overview-io.js';

@AdminController('overview', 'overview')
export class OverviewController {
  constructor(private readonly overview: Overview) {}

  @Get()
  @AdminOperation({
    id: 'overview_read',
    summary: 'Is anything wrong: the numbers of the whole installation.',
    description:
      'Computed at most once in two seconds by each process, however many ask, from what is known already; each number says how old it is, and whether it is an estimate. A part that cannot be read is null.',
    headers: overviewHeaders,
    status: 200,
    answerHeaders: overviewAnswerHeaders,
    answer: overviewOutput,
    otherAnswers: {
      304: { description: 'The numbers are those that `If-None-Match` names.', headers: overviewAnswerHeaders },
    },
  })
  async read(
    @Headers('if-none-match') known: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OverviewAnswer | undefined> {
    const { answer, tag } = await this.overview.get();
    // A browser keeps it, and asks each time whether it still holds.
    void reply.header('etag', tag).header('cache-control', 'private, no-cache');
    if (known !== undefined && namesTag(known, tag)) {
      void reply.status(304);
      return undefined;
    }
    return answer;
  }
}
