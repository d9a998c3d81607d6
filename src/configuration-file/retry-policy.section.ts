import { RetryPolicyChanges, storedGeneral } from '../retry-policy/retry-policy-changes.js';
import { fieldsThatDiffer } from './fields-that-differ.js';
import { nothingPlanned, oneByOne, type Planned, type Planning, type Section, type Step } from './planning.js';

/** The general retry policy. A field that is left out stays as it is, also where it differs from the default. */
export const retryPolicySection: Section = {
  async plan({ manager, configuration: { retryPolicy: wanted } }: Planning): Promise<Planned> {
    if (!wanted) return nothingPlanned;
    const before = await storedGeneral(manager);
    const after = { ...before, ...wanted };
    const fields = fieldsThatDiffer({ fields: { ...before }, secrets: {} }, { fields: after, secrets: {} });
    if (fields.length === 0) return { ...nothingPlanned, unchanged: 1 };
    const step: Step = {
      change: { section: 'retryPolicy', action: 'change', key: 'general', about: null, fields, notes: [] },
      carryOut: async (changed, version) => {
        await new RetryPolicyChanges(changed, version).replaceGeneral(after);
      },
    };
    return { ...nothingPlanned, ...oneByOne([step]) };
  },
};
