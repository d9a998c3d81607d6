import { AuditLog, isAnyChange } from '../audit/audit-log.js';
import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { defaultAlertRules, withDefaults, type AlertRules, type AlertRulesInput } from './alert-rules.js';

const readStored = statement('alert-rules-read', 'SELECT rules FROM alert_rules');
// Locks the row, which a SELECT could not where there is none yet: of two changes the second sees the first.
const lockStored = statement(
  'alert-rules-lock',
  `INSERT INTO alert_rules (rules) VALUES ('{}')
   ON CONFLICT (singleton) DO UPDATE SET rules = alert_rules.rules
   RETURNING rules`,
);
const writeStored = statement('alert-rules-write', 'UPDATE alert_rules SET rules = $rules');

/** Rules, or the fields of one. */
interface Stored {
  [name: string]: unknown;
}

interface Row {
  rules: Stored;
}

const isRule = (value: unknown): value is Stored =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param known has all that this version knows of them */
const knownOf = (stored: Stored, known: object): Stored =>
  Object.fromEntries(
    Object.entries(known).flatMap(([name, inKnown]: [string, unknown]) => {
      if (!Object.hasOwn(stored, name)) return [];
      const value = stored[name];
      return [[name, isRule(value) && isRule(inKnown) ? knownOf(value, inKnown) : value]];
    }),
  );

/** Without what is of a newer version: whoever gives back what was shown would be refused for it. */
const fromStored = (stored: Stored): AlertRules => withDefaults(knownOf(stored, defaultAlertRules));

/** Those that a newer version has, whose processes run beside this one or did so before, stay as they are. */
const laidOver = (stored: Stored, rules: object): Stored => ({
  ...stored,
  ...Object.fromEntries(
    Object.entries(rules).map(([name, value]: [string, unknown]) => {
      const before = stored[name];
      return [name, isRule(before) && isRule(value) ? { ...before, ...value } : value];
    }),
  ),
});

export async function readAlertRules(query: Query): Promise<AlertRules> {
  const [row] = await query<Row>(readStored);
  return fromStored(row?.rules ?? {});
}

/**
 * Changes the rules, and notes it in the audit log. Where they are so already, nothing is written.
 * @param query of the transaction that it is part of
 */
export async function changeAlertRules(query: Query, change: (before: AlertRules) => AlertRules): Promise<AlertRules> {
  const [row] = await query<Row>(lockStored);
  const before = fromStored(row!.rules);
  const rules = change(before);
  const noted = { before: { ...before }, after: { ...rules } };
  const noteOfChange = { action: 'alert-rules.changed', subject: 'alert-rules', ...noted };
  if (!isAnyChange(noteOfChange)) return rules;
  await query(writeStored, { rules: JSON.stringify(laidOver(row!.rules, rules)) });
  await AuditLog.note(query, noteOfChange);
  return rules;
}

/**
 * Replaces the rules of the installation, which each round reads. Fields that are left out get their default.
 * @param mustFit throws where they may not replace the rules that there are
 */
export const replaceAlertRules = (
  postgres: Postgres,
  given: AlertRulesInput,
  mustFit?: (before: AlertRules) => void,
): Promise<AlertRules> =>
  postgres.transaction((query) =>
    changeAlertRules(query, (before) => {
      mustFit?.(before);
      return withDefaults(given);
    }),
  );
