import { changeAlertRules, readAlertRules } from '../alerts/alert-rules-rows.js';
import { changedBy, type AlertRules } from '../alerts/alert-rules.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { fieldsThatDiffer, type Shown } from './fields-that-differ.js';
import { nothingPlanned, oneByOne, type Planned, type Planning, type Section, type Step } from './planning.js';

/**
 * The rules for alerts. A field that is left out stays as it is, also inside a rule: by the call to replace them it
 * would get its default.
 */
export const alertRulesSection: Section = {
  async plan({ manager, configuration: { alertRules: wanted } }: Planning): Promise<Planned> {
    if (!wanted) return nothingPlanned;
    const before = await readAlertRules(queryOf(manager));
    const fields = fieldsThatDiffer(shown(before), shown(changedBy(before, wanted)));
    if (fields.length === 0) return { ...nothingPlanned, unchanged: 1 };
    const step: Step = {
      change: { section: 'alertRules', action: 'change', key: 'general', about: null, fields, notes: [] },
      carryOut: async (changing) => {
        // They are not part of the catalogue, so a call may have changed others of their fields meanwhile: those stay.
        await changeAlertRules(queryOf(changing), (current) => changedBy(current, wanted));
      },
    };
    return { ...nothingPlanned, ...oneByOne([step]) };
  },
};

/** Fields of a rule are named `deadLetters.count`. */
const shown = (rules: AlertRules): Shown => ({
  fields: Object.fromEntries(Object.entries(rules).flatMap(([name, value]) => named(name, value))),
  secrets: {},
});

const named = (name: string, value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).map(([field, inside]) => [`${name}.${field}`, inside])
    : [[name, value]];
