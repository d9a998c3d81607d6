import { mostCounted, type RuleName } from './alert-rules.js';
import type { DetailsOf } from './alert.js';
import type { Audience, News } from './note.js';
import { counted } from '../infra/counted.js';

export interface Description {
  /** A sentence or two. */
  what: string;
  /** Of our words, numbers and ids only. A command that follows what it is for has a line of its own. */
  toDo: string;
}

const titles: Record<RuleName, string> = {
  'dead-letters': 'Dead letters',
  'oldest-due': 'Deliveries are late',
  'endpoint-open': 'A receiver does not work',
  'backlog-growing': 'More arrives than is sent',
  'role-missing': 'A role is missing',
  'ledger-disk': 'The database is large',
  'subscription-failing': 'Calls for a subscription fail',
  'calls-not-made': 'Calls are not made',
  'subscription-disabled': 'A subscription is disabled',
};

/**
 * A rule that is none of ours is of a newer version, which runs beside this one or did before it: its alerts are shown
 * and told by name, rather than that none are.
 */
const isKnown = (rule: string): rule is RuleName => Object.hasOwn(titles, rule);

export const titleOf = (rule: string): string => (isKnown(rule) ? titles[rule] : rule);

/** Where the documentation says more. */
export const runbookOf = (rule: RuleName): string => `docs/operations.md#alert-${rule}`;

/** `since`: ISO 8601. */
type Describe<Rule extends RuleName> = (details: DetailsOf[Rule], since: string) => Description;

const because = (reason: string | null): string => (reason === null ? '' : ` Reason: ${reason.slice(0, 300)}.`);

const deliveries = (count: number): string => {
  if (count >= mostCounted) return `${mostCounted} or more deliveries`;
  return counted(count, 'delivery', 'deliveries');
};

const tried = (count: number): string => `${deliveries(count)} ${count === 1 ? 'waits' : 'wait'} for another try`;

const forOperators: { [Rule in RuleName]: Describe<Rule> } = {
  'dead-letters': ({ subscriptionId, owner, receiver, count, newestNotificationId, reason }) => ({
    what:
      `${deliveries(count)} for subscription ${subscriptionId} of ${owner}, receiver ${receiver}, ended without success. ` +
      `Newest: notification ${newestNotificationId}.${because(reason)}`,
    toDo: [
      'Look at them, likewise at those that are expired and unknown:',
      `heraut deliveries list --state failed --subscription ${subscriptionId}`,
      'When the receiver works again, send those that are failed and expired:',
      `heraut replay start --subscription ${subscriptionId}`,
      'Those that are unknown may have arrived, and would then arrive twice:',
      `heraut replay start --state unknown --subscription ${subscriptionId}`,
      'Those that nobody needs any more:',
      `heraut deliveries close-all --subscription ${subscriptionId} --note "not needed any more"`,
    ].join('\n'),
  }),
  'oldest-due': ({ notificationId, subscriptionId, state }) => ({
    what:
      `The oldest delivery to be sent now, notification ${notificationId} for subscription ${subscriptionId}, ` +
      (state === 'waiting' ? 'is due and was not handed out.' : 'is in the queue and was not taken.'),
    toDo: 'Look at /health/ready, at the log of dispatchers and workers, and at RabbitMQ. Start more workers if all is well.',
  }),
  'endpoint-open': ({ receiver, reason, failures }) => ({
    what: `Calls to ${receiver} fail, ${failures} one after the other, so its deliveries are held.${because(reason)}`,
    toDo:
      'Look at heraut endpoints list, and tell the owner of the receiver. Its deliveries go out when a probe succeeds; ' +
      'once their retry policy is over, a day where it says nothing else, they become dead letters, to be sent again.',
  }),
  'backlog-growing': ({ count, isMore }) => ({
    what: `${count}${isMore ? ' or more' : ''} deliveries are due or in the queue, and they become more.`,
    toDo: 'Look at the CPU of workers and Postgres, and start more workers. If one publisher causes it, talk to it.',
  }),
  'role-missing': ({ role }) => ({
    what: `No process with the role ${role} is alive.`,
    toDo: 'Start one, and read in its log why the last one ended.',
  }),
  'ledger-disk': ({ bytes, maxBytes }) => ({
    what: `The database takes ${gibibytes(bytes)} on disk, more than ${gibibytes(maxBytes)}.`,
    toDo: 'Make the disk larger, or keep less: RETENTION_DAYS. A day with an unfinished delivery is kept whole.',
  }),
  'subscription-failing': ({ subscriptionId, owner, receiver, count, reason }) => ({
    what:
      `Calls for subscription ${subscriptionId} of ${owner}, receiver ${receiver}, fail, and none has succeeded since: ` +
      `${tried(count)}.${because(reason)}`,
    toDo:
      `Look at what was answered: heraut deliveries list --state waiting --min-attempts 1 --subscription ${subscriptionId}. ` +
      'After a 401 or 403 its credentials are wrong, which its owner or an administrator corrects. ' +
      `How long it is tried: heraut policy --subscription ${subscriptionId}.`,
  }),
  'calls-not-made': ({ subscriptionId, owner, receiver, count, reason }) => ({
    what:
      `No call could be made for ${deliveries(count)} for subscription ${subscriptionId} of ${owner}, receiver ${receiver}, ` +
      `for trouble on our side of it.${because(reason)}`,
    toDo:
      'Look at the egress proxy, the token endpoint, the open files of the workers and their SECRET_KEYS, as the reason says; ' +
      `delivery.not-called in their log has it too. Waiting: heraut deliveries list --state waiting --subscription ${subscriptionId}. ` +
      'They go out by themselves, within five minutes after the trouble.',
  }),
  'subscription-disabled': ({ subscriptionId, owner, receiver }, since) => ({
    what: `The receiver ${receiver} of subscription ${subscriptionId}, of ${owner}, answered 410 Gone. Nothing is sent to it.`,
    toDo:
      `Ask its owner. To send again: heraut subscriptions enable ${subscriptionId}; ` +
      `what it missed meanwhile: heraut replay start --everything-for ${subscriptionId} --since ${since}; ` +
      `what failed before: heraut replay start --subscription ${subscriptionId}.`,
  }),
};

const forOwners: { [Rule in RuleName]?: Describe<Rule> } = {
  'dead-letters': ({ subscriptionId, receiver, count }) => ({
    what: `${deliveries(count)} for your subscription ${subscriptionId}, receiver ${receiver}, could not be made. They are not repeated by themselves.`,
    toDo: 'Repair the receiver, then ask the operator to send them again.',
  }),
  'endpoint-open': ({ receiver }) => ({
    what: `Calls to your receiver ${receiver} fail, so your deliveries are held.`,
    toDo:
      'Repair the receiver. The held deliveries are sent within a minute after it works again, or after the time that it asked ' +
      'for by Retry-After. They are held for as long as they would have been tried, a day unless it was agreed otherwise; ' +
      'after that the operator must send them again.',
  }),
  'subscription-failing': ({ subscriptionId, receiver, count }) => ({
    what: `Calls for your subscription ${subscriptionId} fail at your receiver ${receiver}, and none has succeeded since: ${tried(count)}.`,
    toDo:
      'Look at what your receiver answers, and repair it. Where it asks for another Authorization, register the callback again ' +
      'with that (PUT of the abonnement). Waiting deliveries are tried again by themselves, for a day unless it was agreed otherwise.',
  }),
  'subscription-disabled': ({ subscriptionId, receiver }) => ({
    what: `Your receiver ${receiver} answered 410 Gone, so nothing is sent for your subscription ${subscriptionId} any more.`,
    toDo: 'If that was not meant, register the callback again (PUT of the abonnement), or ask the operator to enable it.',
  }),
};

/** In words for one audience. */
export function describeNews(
  { rule, details, since }: Pick<News, 'rule' | 'details'> & { since: string | Date },
  audience: Audience,
): Description {
  if (!isKnown(rule)) return describeUnknown(rule);
  const describe = (audience === 'owner' ? forOwners[rule] : undefined) ?? forOperators[rule];
  return (describe as Describe<RuleName>)(details as never, new Date(since).toISOString());
}

const describeUnknown = (rule: string): Description => ({
  what: `A trouble that a newer version of Heraut has a rule for: ${rule}. This process has an older one, and knows no more of it.`,
  toDo: 'Finish the upgrade, or read about it in the documentation of the newer version.',
});

/** In the unit in which the rule is set. */
const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 3 : 1)} GiB`;
