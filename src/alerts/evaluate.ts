import { endpointsOf, originOf } from '../endpoints/origin.js';
import { timeOfId } from '../ledger/partitions.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { keyOf, type Alert, type Finding } from './alert.js';
import { ruleNames, type AlertRules, type RuleName } from './alert-rules.js';
import { buildsSeen } from './builds.js';
import { shareOut, type LeftOut } from './fair-share.js';
import {
  isWithin,
  subjectOf,
  type DeadOfSubscription,
  type FailingSubscription,
  type OldestDue,
  type OpenFor,
  type Part,
} from './look.js';
import { memoryOfOthers, type BacklogSample, type Memory } from './memory.js';
import type { NotMadeFor } from './not-made.js';
import { notMadeSeen, notMadeSince } from './not-made-memory.js';

/** The state that one round saw. A part that only a disabled rule needs was not looked at, and is empty. */
export interface Observation {
  /** By Postgres' clock. */
  now: Date;
  dead: Part<DeadOfSubscription> | undefined;
  oldestDue: OldestDue | undefined;
  failing: Part<FailingSubscription> | undefined;
  notMade: Part<NotMadeFor> | undefined;
  /** Of the oldest endpoints only. */
  openFor: readonly OpenFor[];
  /** Deliveries that are due or in the queue; at most `mostDue`. */
  dueCount: number;
  mostDue: number;
  /** Those that a living process has. */
  roles: ReadonlySet<string>;
  disk: { at: number; bytes: number } | undefined;
}

/** As they are in memory. */
interface KnownSubscriptions {
  find(id: string): Subscription | undefined;
  all(): Iterable<Subscription>;
}

export interface Evaluated {
  findings: Finding[];
  memory: Memory;
  /** By rule: what this round found and no alert may be opened of. */
  leftOut: Partial<Record<RuleName, LeftOut>>;
  /** Whether this round did not see whether that open alert is over. */
  isUnseen(alert: Pick<Alert, 'rule' | 'subject'>): boolean;
}

/** Samples of the backlog during the time that a rule looks at. */
const samples = 10;
/** A round may be late, so that a sample of a minute ago is a little older. */
const lateMs = 30_000;

/**
 * Compares what was observed with the rules.
 * @param open keys of the alerts that are open: to end, some need more than not to be found anew
 */
export function evaluate(
  rules: AlertRules,
  observed: Observation,
  before: Memory,
  subscriptions: KnownSubscriptions,
  open: ReadonlySet<string>,
): Evaluated {
  const callsNotMadeSince = notMadeSince(observed.now, observed.notMade, before.notMadeSince);
  const { builds, isMixed } = buildsSeen(observed.now, before);
  const memory: Memory = {
    ...(isMixed && memoryOfOthers(before)),
    builds,
    backlog: nextSamples(rules, observed, before.backlog ?? []),
    missingSince: missingSince(rules, observed, before.missingSince ?? {}),
    ...(observed.dead?.upTo !== undefined && { deadUpTo: observed.dead.upTo }),
    ...(observed.failing?.upTo !== undefined && { failingUpTo: observed.failing.upTo }),
    ...(observed.notMade?.upTo !== undefined && { notMadeUpTo: observed.notMade.upTo }),
    ...(callsNotMadeSince !== undefined && { notMadeSince: callsNotMadeSince }),
    ...(observed.notMade && notMadeSeen(observed.now, observed.notMade, before, (id) => subscriptions.find(id))),
    ...(observed.disk && { disk: observed.disk }),
  };
  const { deadLetters, oldestDue, endpointOpen, backlogGrowing, roleMissing, ledgerDisk, subscriptionDisabled } = rules;
  const seenInParts = new Map<string, Part<unknown> | undefined>([
    ['dead-letters', observed.dead],
    ['subscription-failing', observed.failing],
    ['calls-not-made', observed.notMade],
  ]);
  const leftOut: Evaluated['leftOut'] = {};
  const idOf = (subject: string) => subject.slice(subjectOf('').length);
  const ownerOf = (subject: string) => subscriptions.find(idOf(subject))?.ownerClientId;
  const shared = (found: Finding[]): Finding[] => {
    const share = shareOut(found, open, ownerOf);
    if (share.leftOut) leftOut[found[0]!.rule] = share.leftOut;
    return share.findings;
  };
  return {
    findings: [
      ...(observed.dead && deadLetters.isEnabled ? shared(deadFound(rules, observed.dead, subscriptions)) : []),
      ...(oldestDue.isEnabled ? oldestFound(rules, observed) : []),
      ...(endpointOpen.isEnabled ? shared(openFound(observed)) : []),
      ...(backlogGrowing.isEnabled ? backlogFound(rules, observed, memory.backlog!, open) : []),
      ...(roleMissing.isEnabled ? missingFound(rules, observed, memory.missingSince!) : []),
      ...(ledgerDisk.isEnabled ? diskFound(rules, observed) : []),
      ...(observed.failing ? shared(failingFound(observed, observed.failing, subscriptions)) : []),
      ...(observed.notMade ? shared(notMadeFound(rules, observed, observed.notMade, memory, subscriptions, open)) : []),
      ...(subscriptionDisabled.isEnabled ? shared(disabledFound(subscriptions)) : []),
    ],
    memory,
    leftOut,
    isUnseen: ({ rule, subject }) => {
      if (!ruleNames.includes(rule)) return isMixed;
      const part = seenInParts.get(rule);
      if (!part) return false;
      const isHeld = rule === 'calls-not-made' && memory.notMadeLast?.[idOf(subject)] !== undefined;
      return isHeld || !isWithin(part, subject);
    },
  };
}

const aboutSubscription = ({ id, ownerClientId, callbackUrl }: Subscription) => ({
  subscriptionId: id,
  owner: ownerClientId,
  receiver: originOf(callbackUrl),
});

/** Those of a subscription that was deleted since are of no use to anybody. */
const deadFound = (
  { deadLetters }: AlertRules,
  { found }: Part<DeadOfSubscription>,
  subscriptions: KnownSubscriptions,
): Finding[] =>
  found.flatMap((each) => {
    const subscription = subscriptions.find(each.subscriptionId);
    if (!subscription || each.count < deadLetters.count) return [];
    const { count, newestNotificationId, reason } = each;
    return {
      rule: 'dead-letters' as const,
      subject: subjectOf(subscription.id),
      since: new Date(timeOfId(each.oldestNotificationId)),
      details: { ...aboutSubscription(subscription), count, newestNotificationId, reason },
    };
  });

/** Not those that an operator paused, nor those of an endpoint that the rule about endpoints tells of. */
function failingFound(
  { openFor }: Observation,
  { found }: Part<FailingSubscription>,
  subscriptions: KnownSubscriptions,
): Finding[] {
  const parked = new Set(openFor.map(({ address }) => address));
  return found.flatMap((each): Finding[] => {
    const subscription = subscriptions.find(each.subscriptionId);
    if (!subscription || subscription.pausedAt || subscription.disabledAt) return [];
    if (endpointsOf(subscription).some((address) => parked.has(address))) return [];
    const { count, since, reason } = each;
    const details = { ...aboutSubscription(subscription), count, reason };
    return [{ rule: 'subscription-failing', subject: subjectOf(subscription.id), since, details }];
  });
}

/**
 * Since its notification was accepted, or since a round first saw that calls for the subscription are not made: when
 * that began is stored nowhere, and a notification that was scheduled, or waited for something else, is older than the
 * trouble. Of more subscriptions than are remembered: since calls have not been made for anybody. Once open it stays so
 * while a call for it is not made.
 */
function notMadeFound(
  { callsNotMade: { afterSeconds } }: AlertRules,
  { now }: Observation,
  { found }: Part<NotMadeFor>,
  { notMadeFirst: first = {}, notMadeSince: anySince = now.getTime() }: Memory,
  subscriptions: KnownSubscriptions,
  open: ReadonlySet<string>,
): Finding[] {
  return found.flatMap((each): Finding[] => {
    const subscription = subscriptions.find(each.subscriptionId);
    if (!subscription || subscription.pausedAt || subscription.disabledAt) return [];
    const key = { rule: 'calls-not-made', subject: subjectOf(subscription.id) } as const;
    const since = Math.max(timeOfId(each.oldestNotificationId), first[subscription.id] ?? anySince);
    if (!open.has(keyOf(key)) && now.getTime() - since < afterSeconds * 1000) return [];
    const { count, reason } = each;
    return [{ ...key, since: new Date(since), details: { ...aboutSubscription(subscription), count, reason } }];
  });
}

function oldestFound({ oldestDue: { afterSeconds } }: AlertRules, { oldestDue, now }: Observation): Finding[] {
  if (!oldestDue || now.getTime() - oldestDue.since.getTime() < afterSeconds * 1000) return [];
  const { since, ...details } = oldestDue;
  return [{ rule: 'oldest-due', subject: 'deliveries', since, details }];
}

const openFound = ({ openFor }: Observation): Finding[] =>
  openFor.map(({ address, openedAt, reason, failures }) => ({
    rule: 'endpoint-open',
    subject: `endpoint/${address}`,
    since: openedAt,
    details: { receiver: originOf(address), reason, failures },
  }));

/** While few are due there is nothing to compare with. */
function nextSamples(
  { backlogGrowing }: AlertRules,
  observed: Observation,
  before: readonly BacklogSample[],
): BacklogSample[] {
  const at = observed.now.getTime();
  if (!backlogGrowing.isEnabled || observed.dueCount < backlogGrowing.count) return [];
  const forMs = backlogGrowing.forSeconds * 1000;
  const sampleEveryMs = forMs / samples;
  // A time ahead, here and below, is from before Postgres' clock was set back.
  const kept = before.filter((sample) => sample.at <= at && at - sample.at <= forMs + sampleEveryMs + lateMs);
  if (at - (kept.at(-1)?.at ?? 0) < sampleEveryMs) return kept;
  return [...kept, { at, count: observed.dueCount, dueSince: observed.oldestDue?.since.getTime() ?? at }];
}

/** Once open it stays so until few are due: a backlog that shrinks slowly is not over. */
function backlogFound(
  { backlogGrowing: { count, forSeconds } }: AlertRules,
  { now, dueCount, mostDue, oldestDue }: Observation,
  [first]: readonly BacklogSample[],
  open: ReadonlySet<string>,
): Finding[] {
  if (!first || dueCount < count) return [];
  const key = { rule: 'backlog-growing', subject: 'deliveries' } as const;
  const at = now.getTime();
  const isLongEnough = at - first.at >= forSeconds * 1000;
  const isMore = dueCount >= mostDue;
  // Two numbers that are both as large as was counted cannot be compared; then the age of the oldest one grows with the
  // backlog.
  const grownLateMs = at - (oldestDue?.since.getTime() ?? at) - (first.at - first.dueSince);
  const hasGrown =
    isMore && first.count >= mostDue ? grownLateMs > (forSeconds * 1000) / samples : dueCount > first.count;
  if (!open.has(keyOf(key)) && !(isLongEnough && hasGrown)) return [];
  return [{ ...key, since: new Date(first.at), details: { count: dueCount, isMore } }];
}

function missingSince(
  { roleMissing }: AlertRules,
  { now, roles }: Observation,
  before: NonNullable<Memory['missingSince']>,
) {
  const missing = roleMissing.isEnabled ? roleMissing.roles.filter((role) => !roles.has(role)) : [];
  return Object.fromEntries(missing.map((role) => [role, Math.min(before[role] ?? Infinity, now.getTime())]));
}

const missingFound = (
  { roleMissing: { afterSeconds } }: AlertRules,
  { now }: Observation,
  missing: NonNullable<Memory['missingSince']>,
): Finding[] =>
  Object.entries(missing)
    .filter(([, since]) => now.getTime() - since! >= afterSeconds * 1000)
    .map(([role, since]) => ({
      rule: 'role-missing',
      subject: `role/${role}`,
      since: new Date(since!),
      details: { role },
    }));

function diskFound({ ledgerDisk: { maxBytes } }: AlertRules, { disk }: Observation): Finding[] {
  if (!disk || disk.bytes <= maxBytes) return [];
  return [
    { rule: 'ledger-disk', subject: 'ledger', since: new Date(disk.at), details: { bytes: disk.bytes, maxBytes } },
  ];
}

const disabledFound = (subscriptions: KnownSubscriptions): Finding[] =>
  [...subscriptions.all()]
    .flatMap((subscription) => {
      const { disabledAt } = subscription;
      if (!disabledAt) return [];
      const details = aboutSubscription(subscription);
      return {
        rule: 'subscription-disabled' as const,
        subject: subjectOf(subscription.id),
        since: disabledAt,
        details,
      };
    })
    .sort((one, other) => one.since.getTime() - other.since.getTime());
