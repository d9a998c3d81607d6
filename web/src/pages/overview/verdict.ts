import type { components } from '../../../generated/admin-api.d.ts';

export type Overview = components['schemas']['Overview'];

/** `bad`: somebody should act now. `warn`: somebody should look. `note`: somebody did it on purpose, or has time. */
export type Severity = 'bad' | 'warn' | 'note';

export type ReasonKey =
  | 'part'
  | 'silent'
  | 'notMeasured'
  | 'neverMeasured'
  | 'notRead'
  | 'late'
  | 'stuck'
  | 'endpoints'
  | 'gaveUp'
  | 'failing'
  | 'disabled'
  | 'deadLetters'
  | 'paused'
  | 'alerts';

/** One thing that is not as it should be. */
export interface Reason {
  key: ReasonKey;
  severity: Severity;
  /** Trouble of Heraut itself is not to be taken for trouble of those it calls. */
  of: 'heraut' | 'receivers';
  /** How many, where that is said. */
  count: number;
  /** Since when, where that is known. */
  since?: string | undefined;
  /** Of a part of Heraut. */
  part?: { name: string; error: string | null };
  /** Between 0 and 1. */
  share?: number;
  /** Where it can be looked into. */
  to: string;
  search?: Record<string, string>;
}

/** A delivery that is due, or in the queue, is on its way within moments; the alert of it comes later. */
const lateAfterMs = 60_000;
/** A dispatcher measures every ten seconds. */
const measuredWithinMs = 60_000;
/** Fewer calls than that prove nothing. */
const fewestCalls = 20;
const lowestSuccess = 0.95;

const weight: Record<Severity, number> = { bad: 0, warn: 1, note: 2 };

/** The troubles of now, the worst first; none: all is well. */
export function reasonsIn(overview: Overview): Reason[] {
  const reasons = [...ofHeraut(overview), ...ofReceivers(overview)];
  return reasons.sort((one, other) => weight[one.severity] - weight[other.severity]);
}

/** The worst of them. */
export const severityOf = (reasons: readonly Reason[]): Severity | 'fine' => reasons[0]?.severity ?? 'fine';

function ofHeraut(overview: Overview): Reason[] {
  const { computedAt, health, processes, activity, backlog, deadLetters, replays, alerts } = overview;
  const now = Date.parse(computedAt);
  const installation = { to: '/settings', search: { tab: 'installation' } };
  const reasons: Reason[] = [];
  const add = (reason: Omit<Reason, 'of'>) => reasons.push({ of: 'heraut', ...reason });
  for (const { name, status, error } of health.parts)
    if (status === 'down') add({ key: 'part', severity: 'bad', count: 1, part: { name, error }, ...installation });
  const silent = (processes ?? []).filter(({ isAlive }) => !isAlive);
  if (silent.length > 0)
    add({ key: 'silent', severity: 'warn', count: silent.length, since: silent[0]!.heardAt, ...installation });
  if (backlog?.oldestDueAt && now - Date.parse(backlog.oldestDueAt) > lateAfterMs)
    add({
      key: 'late',
      severity: 'bad',
      count: backlog.due.count,
      since: backlog.oldestDueAt,
      to: '/notifications',
      search: { state: 'waiting' },
    });
  if (backlog?.oldestQueuedAt && now - Date.parse(backlog.oldestQueuedAt) > lateAfterMs)
    add({
      key: 'stuck',
      severity: 'bad',
      count: backlog.queued.count,
      since: backlog.oldestQueuedAt,
      to: '/notifications',
      search: { state: 'queued' },
    });
  if (backlog && now - Date.parse(backlog.measuredAt) > measuredWithinMs)
    add({ key: 'notMeasured', severity: 'warn', count: 1, since: backlog.measuredAt, ...installation });
  const isPostgresDown = health.parts.some(({ name, status }) => name === 'postgres' && status === 'down');
  const isAnyNotRead = [processes, activity, replays, alerts].some((part) => part === null);
  if (isAnyNotRead && !isPostgresDown) add({ key: 'notRead', severity: 'warn', count: 1, ...installation });
  // Whether anything is late, or was given up, is read nowhere else.
  if ((backlog === null || deadLetters === null) && !isPostgresDown)
    add({ key: 'neverMeasured', severity: 'warn', count: 1, ...installation });
  if (alerts && alerts.openCount > 0) add({ key: 'alerts', severity: 'warn', count: alerts.openCount, to: '/alerts' });
  return reasons;
}

function ofReceivers({ activity, endpoints, subscriptions, deadLetters }: Overview): Reason[] {
  const reasons: Reason[] = [];
  const add = (reason: Omit<Reason, 'of'>) => reasons.push({ of: 'receivers', ...reason });
  if (endpoints.openCount > 0)
    add({
      key: 'endpoints',
      severity: 'bad',
      count: endpoints.openCount,
      since: endpoints.longest[0]?.openedAt,
      to: '/endpoints',
    });
  const recent = (activity?.lastHour ?? []).reduce((sum, bucket) => sum + bucket.gaveUp, 0);
  const dead = deadLetters ? deadLetters.failed.count + deadLetters.expired.count + deadLetters.unknown.count : null;
  // Dead letters that were sent again or closed since need nobody any more.
  const unmended = dead === null ? recent : Math.min(recent, dead);
  if (unmended > 0) add({ key: 'gaveUp', severity: 'bad', count: unmended, to: '/dead-letters' });
  const { failedAttempts = 0, successRate = null } = activity?.lastMinutes ?? {};
  // Not those that are delivered and those that failed: what its subscriber has fetched is delivered without a call.
  const calls = successRate === null ? 0 : Math.round(failedAttempts / (1 - successRate));
  if (successRate !== null && successRate < lowestSuccess && calls >= fewestCalls)
    add({ key: 'failing', severity: 'warn', count: failedAttempts, share: 1 - successRate, to: '/subscriptions' });
  const { disabled, paused } = subscriptions;
  if (disabled.count > 0)
    add({ key: 'disabled', severity: 'warn', count: disabled.count, ...toOne('disabled', disabled) });
  if (dead !== null && dead > recent) add({ key: 'deadLetters', severity: 'note', count: dead, to: '/dead-letters' });
  if (paused.count > 0) add({ key: 'paused', severity: 'note', count: paused.count, ...toOne('paused', paused) });
  return reasons;
}

/** Of one subscription its own page; of several the list of those. */
const toOne = (state: string, { count, latest }: { count: number; latest: { id: string }[] }) =>
  count === 1 && latest[0] ? { to: `/subscriptions/${latest[0].id}` } : { to: '/subscriptions', search: { state } };
