import { Injectable } from '@nestjs/common';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { changeAlertRules, readAlertRules } from './alert-rules-rows.js';
import { withDefaults, type AlertRules, type AlertRulesInput } from './alert-rules.js';

/** The rules of the installation. Read in each round, so that a change counts from the next one on. */
@Injectable()
export class AlertRulesStore {
  constructor(private readonly postgres: Postgres) {}

  read(query: Query = (statement, values) => this.postgres.query(statement, values)): Promise<AlertRules> {
    return readAlertRules(query);
  }

  /**
   * Fields that are left out get their default.
   * @param mustFit throws where they may not replace the rules that there are
   */
  replace(given: AlertRulesInput, mustFit: (before: AlertRules) => void = () => undefined): Promise<AlertRules> {
    return this.postgres.transaction((query) =>
      changeAlertRules(query, (before) => {
        mustFit(before);
        return withDefaults(given);
      }),
    );
  }
}
