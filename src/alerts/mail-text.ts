import { describeNews, runbookOf, titleOf } from './describe-news.js';
import type { Audience, News, NewsKind, NoteContent } from './note.js';

export interface MailText {
  subject: string;
  text: string;
}

const headings: Record<NewsKind, string> = { opened: 'New', 'still-open': 'Still open', resolved: 'Over' };
const order: readonly NewsKind[] = ['opened', 'still-open', 'resolved'];

/**
 * A note as mail, in plain text. The subject holds words of ours, numbers and the host of the console only.
 * @param consoleUrl its host tells one installation from another. Undefined: not known
 */
export function mailText({ kind, audience, news, more }: NoteContent, consoleUrl?: string): MailText {
  const host = consoleUrl === undefined ? '' : new URL(consoleUrl).host;
  const at = host && ` at ${host}`;
  if (kind === 'test') return { subject: `[Heraut] Test of alerts${at}`, text: test };
  const sections = order
    .map((each) => ({ each, items: news.filter((item) => item.kind === each) }))
    .filter(({ items }) => items.length > 0);
  const subject = sections.map(({ each, items }) => `${headings[each]}: ${count(items)}`).join('. ');
  const blocks = sections.flatMap(({ each, items }) => [
    headings[each].toUpperCase(),
    ...items.map((item) => describe(item, audience)),
  ]);
  if (more > 0) blocks.push(`And ${more} more alerts.`);
  blocks.push(endings[audience]);
  // An owner has no access to the console.
  if (consoleUrl !== undefined) blocks.push(audience === 'operator' ? `${consoleUrl}/alerts` : `Sent by Heraut${at}.`);
  return { subject: `[Heraut] ${subject}${at}`, text: `${blocks.join('\n\n')}\n` };
}

const test =
  'Somebody asked for this note, with heraut alerts test or POST /admin/v1/alerts/test. Nothing has happened: alerts can reach you.\n';

const howOften = 'While a subject is in trouble you are told of it at most once in 24 hours, and when that is over. ';

const endings: Record<Audience, string> = {
  operator: `${howOften}If it comes back after that you are told again, up to five times in 24 hours. All alerts: heraut alerts list. Rules: heraut alerts rules.`,
  // No promise: what comes back waits for the note of the end to operators, where there are any (`untellBack`).
  owner: `${howOften}If it comes back you may be told again, at most five times in 24 hours. You get this because your address was left with the subscription, or with its application.`,
};

/** `Dead letters (3), A role is missing`. */
function count(items: readonly News[]): string {
  const counts = new Map<string, number>();
  for (const { rule } of items) counts.set(titleOf(rule), (counts.get(titleOf(rule)) ?? 0) + 1);
  return [...counts].map(([title, times]) => (times === 1 ? title : `${title} (${times})`)).join(', ');
}

function describe(item: News, audience: Audience): string {
  const { what, toDo } = describeNews(item, audience);
  const times = `Since ${minute(item.since)}${item.resolvedAt ? `, over at ${minute(item.resolvedAt)}` : ''}.`;
  const lines = [`* ${titleOf(item.rule)}: ${item.subject}`, times, what];
  // Of an alert that is over nothing has to be done; an owner has no access to the operator's documentation.
  if (!item.resolvedAt) lines.push(...`To do: ${toDo}`.split('\n'));
  if (!item.resolvedAt && audience === 'operator') lines.push(`More: ${runbookOf(item.rule)}`);
  return lines.map(oneLine).join('\n  ');
}

/** `2026-11-22 09:31 UTC`. */
const minute = (time: string): string => `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;

/** The answer of a receiver, or the name of an application, stays within its line. */
const oneLine = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ');
