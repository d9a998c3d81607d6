import * as z from 'zod';
import { planOutput } from './configuration-io.js';
import type { ConfigurationText, PlacedReference, Remark } from './configuration-text.js';
import type { Plan } from './planning.js';

const given = (of: string) =>
  z.record(z.string().min(1).max(1000), z.string().max(100_000)).optional().describe(`${of} → its value.`);

export const configurationTextInput = z
  .strictObject({
    text: z
      .string()
      .describe('YAML of Heraut, or of `setup_configuration` of Open Notificaties, as a file would have it.'),
    values: z
      .strictObject({ env: given('Name of a variable'), file: given('Path of a file, as the text has it') })
      .prefault({})
      .describe('The values of references (`value_from`), for this request alone. Empty: as if it were not given.'),
  })
  .meta({ id: 'ConfigurationText' });

export const exportedTextOutput = z.strictObject({ text: z.string() }).meta({ id: 'ExportedConfigurationText' });

const place = { line: z.int().describe('Counts from 1.'), column: z.int().describe('Counts from 1.') };
const remark = z.strictObject({
  ...place,
  field: z.string().describe('Its path; empty: the text as a whole.'),
  said: z.string(),
});

export const plannedTextOutput = z
  .strictObject({
    plan: z.strictObject(planOutput.shape).nullable().describe('null: there are problems.'),
    problems: z.array(remark).describe('All that is wrong.'),
    notes: z.array(remark).describe('Remarks on it, although nothing is wrong.'),
    references: z
      .array(
        z.strictObject({
          ...place,
          field: z.string().describe('The field that it stands in.'),
          kind: z.enum(['env', 'file']),
          name: z.string().describe('Of the variable, or path of the file.'),
          isGiven: z
            .boolean()
            .describe('Whether the request had a value for it. Where it had none, what is there stays.'),
        }),
      )
      .describe('Every `value_from`.'),
  })
  .meta({ id: 'PlannedConfigurationText' });

export const plannedToShow = (
  plan: Plan | null,
  { notes, references }: Pick<ConfigurationText, 'notes' | 'references'>,
  problems: Remark[],
): z.output<typeof plannedTextOutput> => ({
  plan,
  problems,
  notes,
  references: references.map(referenceToShow),
});

const referenceToShow = ({ line, column, field, reference, isFollowed }: PlacedReference) => ({
  line,
  column,
  field,
  ...('env' in reference
    ? { kind: 'env' as const, name: reference.env }
    : { kind: 'file' as const, name: reference.file }),
  isGiven: isFollowed,
});
