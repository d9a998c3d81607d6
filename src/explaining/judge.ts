import { compareEntries, type ComparedEntry } from '../subscriptions/compare-entries.js';
import { changesBetween, versionAt, type Version, type WithPast } from './past-version.js';

/** Why a subscription gets a notification, or does not. */
export const verdicts = [
  'matched',
  'filters-not-met',
  'not-subscribed',
  'disabled',
  'created-later',
  'deleted-before',
  'unknown',
] as const;
export type Verdict = (typeof verdicts)[number];

export interface Judgement {
  verdict: Verdict;
  /** Those about the channel; none where the characteristics are not known. */
  entries: ComparedEntry[];
}

/** The parts of a notification that decide which subscriptions get it. */
export interface Matchable {
  channel: string;
  /** By canonical name; undefined: its body was erased. */
  characteristics: ReadonlyMap<string, string> | undefined;
}

export function judge(
  { existence, channels, disabledAt }: Version,
  { channel, characteristics }: Matchable,
): Judgement {
  const entries = compareEntries(channels, channel, characteristics ?? new Map());
  const verdict = (): Verdict => {
    if (existence !== 'present') return existence === 'later' ? 'created-later' : 'deleted-before';
    if (entries.length === 0) return 'not-subscribed';
    // Without characteristics only an entry that demands nothing is certain to be met.
    const isCertain = characteristics !== undefined || entries.some(demandsNothing);
    if (!isCertain) return 'unknown';
    if (!entries.some(({ isMet }) => isMet)) return 'filters-not-met';
    return disabledAt === null ? 'matched' : 'disabled';
  };
  return { verdict: verdict(), entries: characteristics ? entries : entries.filter(demandsNothing) };
}

const demandsNothing = ({ filters }: ComparedEntry): boolean => filters.every(({ result }) => result === 'any');

/** When a notification was matched. Times are in milliseconds since 1970. */
export interface Matching {
  acceptedAt: number;
  /** It may have been replaced, and matched again, until then; null: it was not scheduled. */
  replaceableUntil: number | null;
}

/**
 * The time that a change is noted, and that of a notification's acceptance, are those at which their statements ran.
 * Which of two that are closer than this was committed first, they do not tell.
 */
export const slackMs = 1000;

/**
 * The judgement with the subscription as it was when the notification was matched. Where it was changed at that very
 * time, the ledger tells which of the versions it was: the one by which there is a delivery, or none.
 */
export function judgeThen(
  subscription: WithPast,
  notification: Matchable,
  { acceptedAt, replaceableUntil }: Matching,
  hasDelivery: boolean,
): Judgement {
  const [from, to] = [acceptedAt - slackMs, Math.max(acceptedAt + slackMs, replaceableUntil ?? 0)];
  const times = [acceptedAt, from, ...changesBetween(subscription, from, to)];
  const judgements = times.map((ms) => judge(versionAt(subscription, ms), notification));
  return judgements.find(({ verdict }) => (verdict === 'matched') === hasDelivery) ?? judgements[0]!;
}
