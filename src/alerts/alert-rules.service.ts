import { Injectable } from '@nestjs/common';
import { AuditLog } from '../audit/audit-log.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { withDefaults, type AlertRules, type AlertRulesInput } from './alert-rules.js';

const readStored = statement('alert-rules-read', 'SELECT rules FROM alert_rules');
const writeStored = statement(
  'alert-rules-write',
  `INSERT INTO alert_rules (rules) VALUES ($rules)
   ON CONFLICT (singleton) DO UPDATE SET rules = EXCLUDED.rules`,
);

/** The rules of the installation. Read in each round, so that a change counts from the next one on. */
@Injectable()
export class AlertRulesStore {
  constructor(private readonly postgres: Postgres) {}

  async read(query: Query = this.query): Promise<AlertRules> {
    const [row] = await query<{ rules: AlertRulesInput }>(readStored);
    return withDefaults(row?.rules ?? {});
  }

  /** What is left out gets its default. */
  async replace(given: AlertRulesInput): Promise<AlertRules> {
    const rules = withDefaults(given);
    await this.postgres.transaction(async (query) => {
      const before = await this.read(query);
      await query(writeStored, { rules: JSON.stringify(rules) });
      const noted = { before: { ...before }, after: { ...rules } };
      await AuditLog.note(query, { action: 'alert-rules.changed', subject: 'alert-rules', ...noted });
    });
    return rules;
  }

  private readonly query: Query = (statement, values) => this.postgres.query(statement, values);
}
