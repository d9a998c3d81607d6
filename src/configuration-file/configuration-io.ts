import * as z from 'zod';
import { sectionNames, type SectionName } from './planning.js';

export const pruneQuery = z.object({
  prune: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .describe(
      '`true`: applications and subscriptions that the configuration does not name are removed, each kind only where it has a list of them.',
    ),
});

export const applyQuery = pruneQuery.extend({
  confirm: z
    .string()
    .regex(/^\d{1,9}$/, 'Must be a whole number.')
    .transform(Number)
    .optional()
    .meta({ type: 'integer', pattern: undefined, minimum: 0 })
    .describe('How many applications and subscriptions are removed, as the plan has them. Needed where there are any.'),
});

const fieldChange = z.union([
  z.strictObject({ name: z.string(), before: z.unknown(), after: z.unknown() }),
  z.strictObject({
    name: z.string(),
    secret: z.enum(['set', 'changed', 'removed']).describe('Its value is not told.'),
  }),
]);

const perSection = <T extends z.ZodType>(of: T) =>
  z.strictObject(Object.fromEntries(sectionNames.map((name) => [name, of])) as Record<SectionName, T>);

export const planOutput = z
  .strictObject({
    changes: z.array(
      z.strictObject({
        section: z.enum(sectionNames),
        action: z.enum(['create', 'change', 'remove']),
        key: z.string().describe('Client id of an application, name of a channel, id of a subscription, or `general`.'),
        about: z
          .string()
          .nullable()
          .describe('Of a subscription, its callback; of an application that goes, its label.'),
        fields: z.array(fieldChange),
        notes: z.array(z.string()).describe('Consequences beyond the fields, in sentences for people.'),
      }),
    ),
    unchanged: perSection(z.int()).describe('Entries that are as they should be.'),
    unnamed: perSection(
      z.strictObject({ count: z.int(), first: z.array(z.string()).describe('Some of them.') }),
    ).describe('Things that are there, are not in the configuration, and stay.'),
  })
  .meta({ id: 'ConfigurationPlan' });
