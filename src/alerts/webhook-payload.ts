import { describeNews, runbookOf, titleOf } from './describe-news.js';
import type { NoteContent } from './note.js';

/**
 * A note as it is posted: the form that Standard Webhooks recommend.
 * @param at when it is sent
 * @param consoleUrl tells one installation from another. Undefined: not known
 */
export function webhookPayload({ kind, audience, news, more }: NoteContent, at: Date, consoleUrl?: string): string {
  return JSON.stringify({
    type: kind === 'test' ? 'heraut.alerts.test' : 'heraut.alerts',
    timestamp: at.toISOString(),
    data: {
      alerts: news.map((item) => ({
        kind: item.kind,
        id: item.alertId,
        rule: item.rule,
        subject: item.subject,
        since: item.since,
        openedAt: item.openedAt,
        resolvedAt: item.resolvedAt,
        title: titleOf(item.rule),
        ...describeNews(item, audience),
        runbook: runbookOf(item.rule),
        details: item.details,
      })),
      more,
      console: consoleUrl === undefined ? null : `${consoleUrl}/alerts`,
    },
  });
}
