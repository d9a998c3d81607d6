import { Get, Query } from '@nestjs/common';
import type * as z from 'zod';
import { readSeries, readTotals, readTotalsOf } from '../activity/activity-rows.js';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { checkInput } from '../infra/http/check-input.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { activityOutput, activityQuery, mostTotals, totalsOutput, totalsQuery, totalsToShow } from './activity-io.js';
import { bucketsFrom, countedUntil, firstOf, spans } from './spans.js';

@AdminController('activity', 'activity')
export class ActivityController {
  constructor(
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
  ) {}

  @Get()
  @ReadsMuch()
  @AdminOperation({
    id: 'activity_read',
    summary: 'Counts of what was accepted and delivered, minute by minute or hour by hour.',
    description:
      'Each process counts in memory and adds it up every ten seconds; what a process that is killed counted last is missing. Minutes are kept for two hours, hours for eight days.',
    query: activityQuery,
    status: 200,
    answer: activityOutput,
  })
  async read(@Query() query: Record<string, string>): Promise<z.output<typeof activityOutput>> {
    const { of: kind, id = '', span } = checkInput(activityQuery, query);
    const now = this.ledgerClock.now();
    const from = firstOf(now, spans[span]);
    const { bucketSeconds } = spans[span];
    const counted = await readSeries(this.postgres, { kind, id }, bucketSeconds, from);
    return {
      bucketSeconds,
      countedUntil: new Date(countedUntil(now)).toISOString(),
      buckets: bucketsFrom(from, spans[span], counted),
    };
  }

  @Get('totals')
  @ReadsMuch()
  @AdminOperation({
    id: 'activity_totals',
    summary: 'The same added up over the time, for each channel, subscription or application.',
    query: totalsQuery,
    status: 200,
    answer: totalsOutput,
  })
  async totals(@Query() query: Record<string, string>): Promise<z.output<typeof totalsOutput>> {
    const { of: kind, span, ids, cursor = '' } = checkInput(totalsQuery, query);
    const from = firstOf(this.ledgerClock.now(), spans[span]);
    const { bucketSeconds } = spans[span];
    if (ids) return totalsToShow(from, await readTotalsOf(this.postgres, kind, bucketSeconds, from, ids));
    // One more than is shown tells whether the list goes on.
    const totals = await readTotals(this.postgres, kind, bucketSeconds, from, cursor, mostTotals + 1);
    return totalsToShow(from, totals);
  }
}
