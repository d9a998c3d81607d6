import type { ComparedEntry, ComparedFilter } from '../subscriptions/compare-entries.js';
import type { Judgement } from './judge.js';

/** More of them would make no clearer text. */
const mostNamed = 3;
const mostShown = 80;

/** The judgement in a sentence. */
export function describeJudgement({ verdict, entries }: Judgement, channel: string): string {
  switch (verdict) {
    case 'matched':
      return `It matched by ${metBy(entries[0]!)}.`;
    case 'filters-not-met':
      return `No entry about ${channel} was met: ${entries.slice(0, mostNamed).map(keptAwayBy).join('; ')}${more(entries)}.`;
    case 'not-subscribed':
      return `The subscription has no entry about ${channel}.`;
    case 'disabled':
      return `It matched by ${metBy(entries[0]!)}, but the subscription was disabled: its receiver had answered 410.`;
    case 'created-later':
      return 'The subscription was made after the notification was accepted.';
    case 'deleted-before':
      return 'The subscription was deleted before the notification was accepted.';
    case 'unknown':
      return 'The body of the notification was erased, so its characteristics cannot be compared.';
  }
}

function metBy({ number, filters }: ComparedEntry): string {
  if (filters.length === 0) return `entry ${number}, which has no filters`;
  return `entry ${number}, by ${listed(filters.map(whyMet))}`;
}

function keptAwayBy({ number, filters }: ComparedEntry): string {
  const different = filters.filter(({ result }) => result === 'different');
  const texts = different.map(({ name, wanted, actual }) => `${name} ${quoted(wanted)}, and it was ${quoted(actual!)}`);
  return `entry ${number} wanted ${listed(texts)}`;
}

function whyMet({ name, wanted, result }: ComparedFilter): string {
  if (result === 'any') return `${name} (any value)`;
  return result === 'absent' ? `${name} (which the notification does not have)` : `${name} ${quoted(wanted)}`;
}

const listed = (texts: string[]): string =>
  texts.length <= mostNamed
    ? texts.join(', ')
    : `${texts.slice(0, mostNamed).join(', ')} and ${texts.length - mostNamed} more`;
const more = (entries: ComparedEntry[]): string =>
  entries.length <= mostNamed ? '' : `; and ${entries.length - mostNamed} more`;
const quoted = (value: string): string => `'${value.length > mostShown ? `${value.slice(0, mostShown)}…` : value}'`;
