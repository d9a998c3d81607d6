import * as z from 'zod';
import { deliveryStates, heldReasons } from '../ledger/delivery.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import { filterResults } from '../subscriptions/compare-entries.js';
import { describeFate } from './describe-fate.js';
import { describeJudgement } from './describe-judgement.js';
import { fates, type DryRun, type Forecast } from './dry-run.service.js';
import { toCursor } from './explanation-cursor.js';
import type { Explanation, ExplanationPage } from './explanation-reader.service.js';
import { verdicts, type Judgement } from './judge.js';

/** A subscription may have thousands. */
const mostEntries = 20;

const time = () => z.iso.datetime();
const heldReasonOrNull = () => z.literal([...heldReasons, null]).meta({ type: 'string', nullable: true });

const judged = {
  subscriptionId: z.uuid(),
  ownerClientId: z.string(),
  callbackUrl: z.string(),
  text: z.string().describe('All of it, in a few sentences. They may change; the fields do not.'),
  isMatched: z
    .boolean()
    .nullable()
    .describe('Whether the subscription is one that gets it; null: its erased body told.'),
  verdict: z
    .enum(verdicts)
    .describe(
      '`matched`; `filters-not-met`: no entry was; `not-subscribed`: no entry is about the channel; `disabled`: an entry was met, but its receiver had answered 410; `created-later`; `deleted-before`; `unknown`: the body was erased.',
    ),
  entries: z
    .array(
      z.strictObject({
        number: z.int().describe('Among all entries (`channels`) of the subscription; counts from 1.'),
        isMet: z.boolean(),
        filters: z.array(
          z.strictObject({
            name: z.string(),
            wanted: z.string(),
            actual: z.string().nullable().describe('null: the notification does not have the name.'),
            result: z
              .enum(filterResults)
              .describe(
                '`equal`; `any`: `*` was wanted; `absent`: the notification does not have the name, so nothing keeps it away; `different`: this keeps it away.',
              ),
          }),
        ),
      }),
    )
    .describe(
      `The entries about the channel: those that were met first, then those that lacked least; at most ${mostEntries}.`,
    ),
  entryCount: z.int().describe('Entries about the channel, all in all.'),
};

const explanationOutput = z
  .strictObject({
    ...judged,
    catalogue: z
      .enum(['as-of-acceptance', 'as-far-as-known'])
      .describe(
        '`as-of-acceptance`: the subscription as it was when the notification was accepted. `as-far-as-known`: it may have been changed since, and nobody noted that.',
      ),
    catalogueReason: z.string(),
    delivery: z
      .strictObject({
        state: z.enum(deliveryStates),
        heldFor: heldReasonOrNull(),
        heldSince: time().nullable(),
        nextAttemptAt: time().nullable().describe('While it waits.'),
        expiresAt: time().nullable(),
        attemptCount: z.int(),
        lastStatus: z.int().nullable(),
        lastError: z.string().nullable(),
        endedAt: time().nullable(),
        behind: z.uuid().nullable().describe('Held for its order: the notification that has the turn.'),
        endpoint: z
          .strictObject({ address: z.string(), openedAt: time(), reason: z.string(), nextProbeAt: time() })
          .nullable()
          .describe('Held for its endpoint: that, while its circuit breaker is open.'),
      })
      .nullable()
      .describe('null: there is none.'),
  })
  .meta({ id: 'Explanation' });

const nextCursor = z
  .string()
  .nullable()
  .describe('Where the list goes on; null at its end. A page may be short, or empty, although the list goes on.');

export const explanationPageOutput = z
  .strictObject({ notificationId: z.uuid(), explanations: z.array(explanationOutput), nextCursor })
  .meta({ id: 'ExplanationPage' });

const forecastOutput = z
  .strictObject({
    ...judged,
    fate: z
      .enum(fates)
      .describe(
        'The fate of its delivery: `sent` at once; `held`; `in-line` behind another about the same object; `expired`: too old; `duplicate`: not sent; `none`: there would be none.',
      ),
    heldFor: heldReasonOrNull(),
    behind: z.uuid().nullable().describe('In line: the notification that has the turn.'),
  })
  .meta({ id: 'Forecast' });

export const dryRunOutput = z
  .strictObject({
    channel: z.string(),
    body: z.string().describe('The exact text that receivers would get.'),
    matchedCount: z.int().describe('Subscriptions that would get it. Exact, as of now.'),
    subscribedCount: z.int().describe('Subscriptions about its channel, these among them.'),
    duplicateOf: z
      .uuid()
      .nullable()
      .describe('The notification with the same content, by the rule of its channel: this one would not be sent.'),
    isTooOld: z.boolean().describe('It is older than its channel allows: it would be accepted, and not sent.'),
    explanations: z.array(forecastOutput),
    nextCursor,
  })
  .meta({ id: 'DryRun' });

export function explanationPageToShow(
  notificationId: string,
  channel: string,
  { explanations, next }: ExplanationPage,
): z.output<typeof explanationPageOutput> {
  return {
    notificationId,
    explanations: explanations.map((explanation) => explanationToShow(explanation, channel)),
    nextCursor: next ? toCursor(next) : null,
  };
}

function explanationToShow(
  { judgement, basis, delivery, situation, endpoint, ...subscription }: Explanation,
  channel: string,
): z.output<typeof explanationOutput> {
  const hasDelivery = delivery !== undefined;
  const isMatched = judgement.verdict === 'matched';
  const isUnknown = judgement.verdict === 'unknown';
  return {
    ...subscription,
    ...judgementToShow(judgement),
    isMatched: isUnknown ? hasDelivery || null : isMatched,
    text: [
      describeJudgement(judgement, channel),
      ...(isUnknown || isMatched === hasDelivery ? [] : [nevertheless(hasDelivery)]),
      ...(situation === undefined ? [] : [situation]),
    ].join(' '),
    catalogue: basis.catalogue,
    catalogueReason: basis.reason,
    delivery: delivery
      ? {
          state: delivery.state,
          heldFor: delivery.heldFor,
          heldSince: delivery.state === 'held' ? shown(delivery.heldSince) : null,
          nextAttemptAt: delivery.state === 'waiting' ? shown(delivery.nextAt) : null,
          expiresAt: shown(delivery.expiresAt),
          attemptCount: delivery.attempts,
          lastStatus: delivery.lastStatus,
          lastError: delivery.lastError,
          endedAt: shown(delivery.endedAt),
          behind: delivery.turnOf,
          endpoint: endpoint ? endpointToShow(endpoint) : null,
        }
      : null,
  };
}

/** Where the ledger and the judgement do not agree. */
const nevertheless = (hasDelivery: boolean): string =>
  hasDelivery
    ? 'Yet there is a delivery: a replay made it, or the subscription was another one when the notification was matched.'
    : 'Yet there is no delivery: the subscription was another one when the notification was matched.';

export function dryRunToShow({ notification, next, ...run }: DryRun): z.output<typeof dryRunOutput> {
  const { channel, body } = notification;
  return {
    channel: channel.name,
    body,
    matchedCount: run.matched,
    subscribedCount: run.subscribed,
    duplicateOf: run.duplicateOf,
    isTooOld: run.isTooOld,
    explanations: run.forecasts.map((forecast) => forecastToShow(forecast, channel.name, run.duplicateOf)),
    nextCursor: next ? toCursor(next) : null,
  };
}

function forecastToShow(
  forecast: Forecast,
  channel: string,
  duplicateOf: string | null,
): z.output<typeof forecastOutput> {
  const { subscription, judgement, fate, heldFor, behind } = forecast;
  const { id: subscriptionId, ownerClientId, callbackUrl } = subscription;
  return {
    subscriptionId,
    ownerClientId,
    callbackUrl,
    ...judgementToShow(judgement),
    isMatched: judgement.verdict === 'matched',
    text: [describeJudgement(judgement, channel), ...describeFate(forecast, duplicateOf)].join(' '),
    fate,
    heldFor,
    behind,
  };
}

const judgementToShow = ({ verdict, entries }: Judgement) => ({
  verdict,
  entries: entries.slice(0, mostEntries),
  entryCount: entries.length,
});

const endpointToShow = ({ address, openedAt, reason, nextProbeAt }: OpenEndpoint) => ({
  address,
  openedAt: openedAt.toISOString(),
  reason,
  nextProbeAt: nextProbeAt.toISOString(),
});

const shown = (time: Date | null): string | null => time?.toISOString() ?? null;
