import * as z from 'zod';
import { roles } from '../config/server-settings.js';

/** Troubles that operators are told of. Each has an entry `alert-NAME` in docs/operations.md. */
export const ruleNames = [
  'dead-letters',
  'oldest-due',
  'endpoint-open',
  'backlog-growing',
  'role-missing',
  'ledger-disk',
  'subscription-failing',
  'calls-not-made',
  'subscription-disabled',
] as const;
export type RuleName = (typeof ruleNames)[number];

/** Of one subscription: more dead letters, or failed ones that wait, are not counted. */
export const mostCounted = 100;

const isEnabled = z.boolean().describe('false: nobody is told, and what is open ends.');
const seconds = () => z.int().min(1).max(604_800);
const gibibyte = 1_073_741_824;

const shapes = {
  deadLetters: z
    .strictObject({
      isEnabled,
      count: z.int().min(1).max(mostCounted).describe('Dead letters of one subscription, at least.'),
    })
    .describe('A subscription has dead letters. Ends when it has fewer.'),
  oldestDue: z
    .strictObject({ isEnabled, afterSeconds: seconds().describe('Seconds that one may be late.') })
    .describe('A delivery that is due, or in the queue, has not been sent for so long.'),
  endpointOpen: z
    .strictObject({ isEnabled, afterSeconds: seconds().describe('Seconds that one may be parked.') })
    .describe('The circuit breaker of an endpoint has been open for so long.'),
  backlogGrowing: z
    .strictObject({
      isEnabled,
      count: z.int().min(1).max(50_000).describe('Deliveries that are due or in the queue, at least.'),
      forSeconds: z.int().min(60).max(3600).describe('Seconds during which there are as many, and in the end more.'),
    })
    .describe('More arrives than is sent. Ends when fewer are due.'),
  roleMissing: z
    .strictObject({
      isEnabled,
      roles: z.array(z.enum(roles)).max(roles.length).describe('Without `dispatcher` where cron does its work.'),
      afterSeconds: seconds().describe('Seconds that a role may be missing.'),
    })
    .describe('No process with a role is alive.'),
  ledgerDisk: z
    .strictObject({
      isEnabled,
      maxBytes: z.int().min(1_000_000).describe('Say seven tenths of the disk of Postgres.'),
    })
    .describe('The database takes more than so many bytes on disk.'),
  subscriptionFailing: z
    .strictObject({ isEnabled, afterSeconds: seconds().describe('Seconds that its calls may fail.') })
    .describe(
      'A delivery of a subscription has failed for so long, and none has succeeded since: its receiver answers 401, say. Not of ' +
        'one that is paused, nor of one whose endpoint `endpointOpen` tells of.',
    ),
  callsNotMade: z
    .strictObject({ isEnabled, afterSeconds: seconds().describe('Seconds that its calls may not be made.') })
    .describe(
      'No call could be made for a delivery of a subscription for so long, for trouble on our side of the receiver: the egress ' +
        'proxy, a token endpoint, a process without its secret keys. Not of one that is paused. Owners are not told.',
    ),
  subscriptionDisabled: z
    .strictObject({ isEnabled })
    .describe('A receiver answered 410, so that nothing is sent to it any more.'),
};

const general = {
  repeatAfterHours: z
    .int()
    .min(24)
    .max(720)
    .nullable()
    .describe('Hours after which what is still open is told of again. null: never.'),
  groupSeconds: z
    .int()
    .min(0)
    .max(3600)
    .describe('After a note the next one waits so many seconds, and brings all that has come up meanwhile.'),
  tellsOwners: z
    .boolean()
    .describe('Whether owners of subscriptions that left an `alertEmail` are told of what concerns theirs.'),
};

export const alertRulesOutput = z.strictObject({ ...shapes, ...general }).meta({ id: 'AlertRules' });
export type AlertRules = z.output<typeof alertRulesOutput>;

/** Replaces all rules: what is left out gets its default. */
export const alertRulesInput = z
  .strictObject({
    deadLetters: shapes.deadLetters.partial(),
    oldestDue: shapes.oldestDue.partial(),
    endpointOpen: shapes.endpointOpen.partial(),
    backlogGrowing: shapes.backlogGrowing.partial(),
    roleMissing: shapes.roleMissing.partial(),
    ledgerDisk: shapes.ledgerDisk.partial(),
    subscriptionFailing: shapes.subscriptionFailing.partial(),
    callsNotMade: shapes.callsNotMade.partial(),
    subscriptionDisabled: shapes.subscriptionDisabled.partial(),
    ...general,
  })
  .partial()
  .meta({ id: 'AlertRulesInput' });
export type AlertRulesInput = z.output<typeof alertRulesInput>;

export const defaultAlertRules: AlertRules = {
  deadLetters: { isEnabled: true, count: 1 },
  oldestDue: { isEnabled: true, afterSeconds: 300 },
  endpointOpen: { isEnabled: true, afterSeconds: 900 },
  backlogGrowing: { isEnabled: true, count: 1000, forSeconds: 600 },
  roleMissing: { isEnabled: true, roles: [...roles], afterSeconds: 60 },
  ledgerDisk: { isEnabled: true, maxBytes: 50 * gibibyte },
  subscriptionFailing: { isEnabled: true, afterSeconds: 3600 },
  callsNotMade: { isEnabled: true, afterSeconds: 600 },
  subscriptionDisabled: { isEnabled: true },
  repeatAfterHours: 24,
  groupSeconds: 30,
  tellsOwners: true,
};

const nameOf = {
  'dead-letters': 'deadLetters',
  'oldest-due': 'oldestDue',
  'endpoint-open': 'endpointOpen',
  'backlog-growing': 'backlogGrowing',
  'role-missing': 'roleMissing',
  'ledger-disk': 'ledgerDisk',
  'subscription-failing': 'subscriptionFailing',
  'calls-not-made': 'callsNotMade',
  'subscription-disabled': 'subscriptionDisabled',
} as const satisfies Record<RuleName, keyof AlertRules>;

/** One of a newer version is not known to be off. */
export const isOff = (rules: AlertRules, rule: RuleName): boolean =>
  Object.hasOwn(nameOf, rule) && !rules[nameOf[rule]].isEnabled;

/** With the defaults of what was left out, or came with a version after the one that stored it. */
export const withDefaults = (given: AlertRulesInput): AlertRules => changedBy(defaultAlertRules, given);

/** A field that is left out stays as it is, also one of a rule. */
export const changedBy = (rules: AlertRules, given: AlertRulesInput): AlertRules => ({
  ...rules,
  ...given,
  deadLetters: { ...rules.deadLetters, ...given.deadLetters },
  oldestDue: { ...rules.oldestDue, ...given.oldestDue },
  endpointOpen: { ...rules.endpointOpen, ...given.endpointOpen },
  backlogGrowing: { ...rules.backlogGrowing, ...given.backlogGrowing },
  roleMissing: { ...rules.roleMissing, ...given.roleMissing },
  ledgerDisk: { ...rules.ledgerDisk, ...given.ledgerDisk },
  subscriptionFailing: { ...rules.subscriptionFailing, ...given.subscriptionFailing },
  callsNotMade: { ...rules.callsNotMade, ...given.callsNotMade },
  subscriptionDisabled: { ...rules.subscriptionDisabled, ...given.subscriptionDisabled },
});
