import * as z from 'zod';
import { storable } from '../infra/http/input-parts.js';
import { nextCursor, pageQuery } from '../infra/http/page-query.js';
import { ruleNames } from './alert-rules.js';
import type { Alert } from './alert.js';
import { describeNews, runbookOf, titleOf } from './describe-news.js';
import type { Tried } from './note-sender.service.js';

export interface AlertPage {
  alerts: Alert[];
  /** Whether the list goes on. */
  isMore: boolean;
}

export const alertOutput = z
  .strictObject({
    id: z.string().describe('Rises from alert to alert.'),
    rule: z.enum(ruleNames).describe('A newer version that runs beside this one, or did, may have others.'),
    subject: z.string().describe('Kind and id, such as `subscription/<uuid>`, `endpoint/<address>`, `role/worker`.'),
    since: z.iso.datetime().describe('When the trouble began, as far as is known.'),
    openedAt: z.iso.datetime(),
    resolvedAt: z.iso.datetime().nullable().describe('null: it is open.'),
    toldAt: z.iso.datetime().nullable().describe('When somebody was last told that it is open; null: nobody was.'),
    title: z.string(),
    what: z.string().describe('In words.'),
    toDo: z.string(),
    runbook: z.string().describe('Place in the documentation.'),
    details: z.record(z.string(), z.unknown()).describe('By rule; as last seen.'),
  })
  .meta({ id: 'Alert' });

export const alertPageOutput = z
  .strictObject({
    alerts: z.array(alertOutput),
    nextCursor,
  })
  .meta({ id: 'AlertPage' });

/** As far as `bigint` goes. */
const alertId = /^[1-9]\d{0,17}$/;

export const alertQuery = z
  .strictObject({
    state: z.enum(['open', 'resolved']).optional(),
    rule: z.enum(ruleNames).optional(),
    subject: z
      .string()
      .min(1)
      .max(2100)
      .check(storable)
      .optional()
      .describe('Exactly this one, as an alert of `rule` has it: how often it was in the same trouble.'),
    ...pageQuery('alerts', (text) => (alertId.test(text) ? text : undefined)),
  })
  .refine(({ rule, subject }) => subject === undefined || rule !== undefined, {
    path: ['rule'],
    error: 'A subject is found among the alerts of a rule.',
  });

export const recipientsOutput = z
  .strictObject({
    webhook: z.string().nullable().describe('Origin of ALERT_WEBHOOK_URL; null: not set.'),
    mail: z.array(z.string()).describe('ALERT_MAIL_TO.'),
    canMail: z.boolean().describe('EMAIL_HOST is set, so that owners of subscriptions can be told as well.'),
  })
  .meta({ id: 'AlertRecipients' });

export const alertTestOutput = z
  .strictObject({
    results: z
      .array(
        z.strictObject({
          channel: z.enum(['webhook', 'mail']),
          recipient: z.string().nullable().describe('Mail address; null of the webhook.'),
          isSent: z.boolean(),
          error: z.string().nullable().describe('Why it was not sent.'),
        }),
      )
      .describe('One for each recipient. None: neither ALERT_WEBHOOK_URL nor ALERT_MAIL_TO is set.'),
  })
  .meta({ id: 'AlertTest' });

export const pageToShow = ({ alerts, isMore }: AlertPage): z.output<typeof alertPageOutput> => ({
  alerts: alerts.map(alertToShow),
  nextCursor: isMore ? (alerts.at(-1)?.id ?? null) : null,
});

export const alertToShow = (alert: Alert): z.output<typeof alertOutput> => ({
  id: alert.id,
  rule: alert.rule,
  subject: alert.subject,
  since: alert.since.toISOString(),
  openedAt: alert.openedAt.toISOString(),
  resolvedAt: alert.resolvedAt?.toISOString() ?? null,
  toldAt: (alert.isTold && alert.lastToldAt?.toISOString()) || null,
  title: titleOf(alert.rule),
  ...describeNews(alert, 'operator'),
  runbook: runbookOf(alert.rule),
  details: { ...alert.details },
});

export const testToShow = (tried: readonly Tried[]): z.output<typeof alertTestOutput> => ({
  results: tried.map(({ channel, address, result }) => ({
    channel,
    recipient: channel === 'mail' ? address : null,
    isSent: result.isSent,
    error: result.isSent ? null : result.reason,
  })),
});
