import * as z from 'zod';
import { roles } from '../config/server-settings.js';
import type { ListedProcess } from '../liveness/heartbeat.service.js';

/** Shown of them: those that were heard of last. */
export const mostProcesses = 300;

export const processOutput = z
  .strictObject({
    id: z.string(),
    roles: z.array(z.enum(roles)),
    version: z.string().nullable().describe('Of Heraut. null, like the next three: an older one, which does not say.'),
    node: z.string().nullable().describe('Version of Node.'),
    host: z.string().nullable().describe('Name of its machine or container.'),
    startedAt: z.iso.datetime().nullable(),
    isAlive: z.boolean().describe('false: it was not heard of for ten seconds, and did not say that it ends.'),
    heardAt: z.iso.datetime().describe('Its last sign of life; one comes every two seconds.'),
    isThis: z.boolean().describe('It gave this answer.'),
  })
  .meta({ id: 'Process' });

/** @param own id of the process that answers */
export const processToShow = (
  { startedAt, heardAt, ...process }: ListedProcess,
  own: string,
): z.output<typeof processOutput> => ({
  ...process,
  startedAt: startedAt?.toISOString() ?? null,
  heardAt: heardAt.toISOString(),
  isThis: process.id === own,
});
