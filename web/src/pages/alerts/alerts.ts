import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../../api/client.ts';
import { namesOf } from '../../parts/names-of.ts';

export type AlertPage = components['schemas']['AlertPage'];
export type Alert = AlertPage['alerts'][number];
export type RuleName = Alert['rule'];
export type AlertRules = components['schemas']['AlertRules'];

export const ruleNames = namesOf<RuleName>({
  'dead-letters': true,
  'oldest-due': true,
  'endpoint-open': true,
  'backlog-growing': true,
  'role-missing': true,
  'ledger-disk': true,
  'subscription-failing': true,
  'calls-not-made': true,
  'subscription-disabled': true,
});

export const rulesKey = ['alert-rules'] as const;

export interface AlertFilter {
  rule?: RuleName | undefined;
  /** Only together with a rule. */
  subject?: string | undefined;
}

/**
 * More than a tall window shows: of a list that reads on by itself more than one page is there, and that stays as it
 * is.
 */
const pageLength = 100;

export const readAlerts = (
  state: 'open' | 'resolved',
  { rule, subject }: AlertFilter,
  cursor: string | undefined,
  signal?: AbortSignal,
): Promise<AlertPage> => {
  const query = {
    state,
    rule,
    subject,
    ...(cursor && { cursor }),
    limit: pageLength,
  };
  return answerOf(api.GET('/admin/v1/alerts', { params: { query }, signal }));
};

/** One by its id; null: there is none, or not any more. */
export async function findAlert(id: string, signal?: AbortSignal): Promise<Alert | null> {
  if (!/^\d{1,17}$/.test(id)) return null;
  // Ids rise, and a list goes on below the one that is its cursor.
  const query = { cursor: String(BigInt(id) + 1n), limit: 1 };
  const { alerts } = await answerOf(api.GET('/admin/v1/alerts', { params: { query }, signal }));
  return alerts.find((alert) => alert.id === id) ?? null;
}

export const readRules = (signal?: AbortSignal) => answerAndTagOf(api.GET('/admin/v1/alert-rules', { signal }));

export const writeRules = (body: components['schemas']['AlertRulesInput'], tag: string | undefined) =>
  answerAndTagOf(
    api.PUT('/admin/v1/alert-rules', { params: { header: tag === undefined ? {} : { 'If-Match': tag } }, body }),
  );
