import * as z from 'zod';
import { processOutput } from './process-output.js';

const server = <Kind extends string>(kinds: [Kind, ...Kind[]], description: string) =>
  z
    .strictObject({
      kind: z.enum(kinds),
      version: z.string().nullable().describe('null: it has none, or does not answer.'),
      isUp: z.boolean(),
    })
    .describe(description);

export const installationOutput = z
  .strictObject({
    version: z.string().describe('Of the process that answers.'),
    processes: z
      .array(processOutput)
      .describe(
        'Those that are alive, and those that were not heard of any more; at most 300, the last heard of first.',
      ),
    servers: z.strictObject({
      database: server(['postgresql', 'embedded'], 'The ledger.').extend({
        bytes: z
          .strictObject({ measuredAt: z.iso.datetime(), bytes: z.int() })
          .nullable()
          .describe('Of the whole database; measured every five minutes. null: not yet.'),
      }),
      queue: server(['rabbitmq', 'in-memory'], 'The queue that moves the work.'),
      locks: server(['redis', 'database'], 'Where locks and seals are kept.'),
    }),
    settings: z
      .array(
        z.strictObject({
          name: z.string(),
          value: z
            .string()
            .nullable()
            .describe('As it would be written in the environment; of a URL its host. null: it is or may be secret.'),
          default: z.string().nullable().describe('null: it has none.'),
        }),
      )
      .describe('Those of the process that answers that differ from their defaults; docs/configuration.md has all.'),
  })
  .meta({ id: 'Installation' });
