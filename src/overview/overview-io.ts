import * as z from 'zod';
import { alertOutput } from '../alerts/alerts-io.js';
import { heldReasons } from '../ledger/delivery.js';
import { openReplayStates, replayKinds } from '../replays/replay.js';
import { countsShape } from './activity-io.js';
import { processOutput } from './process-output.js';

/*
 * The numbers of the overview, in one answer. A part that could not be read is null, and `health` says why.
 */

const time = () => z.iso.datetime();

const count = z
  .strictObject({
    count: z.int(),
    isEstimate: z
      .boolean()
      .describe('Of Postgres: there are more than 10,000, or it is a part of as many: held for a reason, for example.'),
  })
  .meta({ id: 'EstimatedCount' });

const healthOutput = z.strictObject({
  status: z.enum(['ready', 'degraded', 'unavailable']).describe('Of the process that answers, as in `/health/ready`.'),
  parts: z.array(z.strictObject({ name: z.string(), status: z.enum(['up', 'down']), error: z.string().nullable() })),
});

const activityOutput = z.strictObject({
  countedUntil: time().describe(
    'All of these numbers are of the time before. They are those of the processes, as `GET /admin/v1/activity` has them.',
  ),
  lastMinute: z.strictObject({ seconds: z.int(), ...countsShape }),
  lastMinutes: z
    .strictObject({
      seconds: z.int(),
      ...countsShape,
      successRate: z
        .number()
        .nullable()
        .describe(
          'Of the calls to receivers, those after which a delivery was delivered; 0 to 1. null: there were none.',
        ),
      deliveryP50Ms: z
        .number()
        .nullable()
        .describe(
          'From acceptance to delivery, retries and waiting included: half of the deliveries took no longer; right to a fifth. Without those that were replayed, and first attempts that waited in the ledger, such as scheduled and held ones. null: there were none.',
        ),
      deliveryP95Ms: z.number().nullable().describe('Nineteen of twenty took no longer.'),
    })
    .describe('About five minutes.'),
  lastHour: z
    .array(z.strictObject({ at: time(), ...countsShape }))
    .describe('Sixty minutes, the oldest first, and the one that is not over yet.'),
});

const backlogOutput = z
  .strictObject({
    measuredAt: time().describe('By a dispatcher, every ten seconds.'),
    queued: count,
    sending: count,
    waiting: count,
    held: z.strictObject(
      Object.fromEntries(heldReasons.map((reason) => [reason, count])) as Record<
        (typeof heldReasons)[number],
        typeof count
      >,
    ),
    due: count.describe('Of those that wait: their time has come, and they are not handed out yet.'),
    oldestDueAt: time().nullable().describe('Since when the one that is due longest is. null: none is.'),
    oldestQueuedAt: time().nullable().describe('When the oldest one in the queue was put there. null: it is empty.'),
  })
  .describe('Deliveries that have not ended, by state.');

const subscriptionItem = z.strictObject({
  id: z.uuid(),
  receiver: z.string().describe('Scheme, host and port of its callback URL.'),
});
const halted = z.strictObject({
  count: z.int(),
  latest: z.array(subscriptionItem.extend({ since: time() })).describe('The last ones, at most five.'),
});

export const overviewOutput = z
  .strictObject({
    computedAt: time().describe(
      'At most two seconds ago, however many ask. The `ETag` of the answer is not about this field.',
    ),
    health: healthOutput,
    processes: z.array(processOutput).nullable(),
    activity: activityOutput.nullable(),
    backlog: backlogOutput.nullable().describe('null also: no dispatcher has measured yet.'),
    deadLetters: z
      .strictObject({ measuredAt: time(), failed: count, expired: count, unknown: count })
      .nullable()
      .describe('Those that are kept, by state.'),
    endpoints: z.strictObject({
      openCount: z.int().describe('Endpoints whose circuit breaker is open; from 10,000 on at least as many.'),
      longest: z
        .array(
          z.strictObject({
            address: z.string(),
            reason: z.string(),
            openedAt: time(),
            nextProbeAt: time(),
          }),
        )
        .describe('Those that have been so longest, at most five.'),
    }),
    subscriptions: z.strictObject({
      count: z.int(),
      haltedCount: z.int().describe('Disabled, paused or both.'),
      disabled: halted.describe('Their receiver answered 410. One that is paused as well is in both.'),
      paused: halted,
      troubled: z
        .strictObject({
          measuredAt: time().describe('By a dispatcher, every minute.'),
          most: z
            .array(
              subscriptionItem.extend({
                unsent: z.int().describe('Waiting and held deliveries, counted up to 1000.'),
                dead: z.int().describe('Dead letters, counted up to 1000.'),
              }),
            )
            .describe(
              'Those with most of both, at most five, of those with the newest dead letters, with retries that come next, or with something held: one whose trouble is older may be missing.',
            ),
        })
        .nullable(),
    }),
    replays: z
      .array(
        z.strictObject({
          kind: z.enum(replayKinds),
          state: z.enum(openReplayStates),
          replays: z.int(),
          done: z.int().describe('Deliveries.'),
          left: z.int().describe('Deliveries that were counted when it was made.'),
        }),
      )
      .nullable()
      .describe('Those that have not ended, by kind and state.'),
    alerts: z
      .strictObject({
        openCount: z.int(),
        latest: z.array(alertOutput).describe('The last ones that were opened, at most five.'),
      })
      .nullable(),
  })
  .meta({ id: 'Overview' });

export type OverviewAnswer = z.output<typeof overviewOutput>;

export const overviewHeaders = z.object({
  'If-None-Match': z.string().optional().describe('The `ETag` of an answer: with the same numbers there is no body.'),
});

export const overviewAnswerHeaders = z.object({ ETag: z.string().describe('Of these numbers, for `If-None-Match`.') });
