import * as z from 'zod';
import { toCursor } from './entry-cursor.js';
import type { Entry, EntryPage } from './entry-reader.service.js';

const fields = () => z.record(z.string(), z.unknown()).nullable();

const entryOutput = z
  .strictObject({
    id: z.string().describe('Rises from entry to entry.'),
    at: z.iso.datetime(),
    by: z
      .enum(['client', 'user', 'system'])
      .describe(
        'An application, a user of the console, or Heraut itself (`system`), for example after a receiver answered 410.',
      ),
    client: z
      .string()
      .nullable()
      .describe('Client id of the application that asked for it, or the name of the user who did.'),
    via: z
      .string()
      .nullable()
      .describe(
        'How the user had signed in: `oidc`, `password` (a superuser’s secret) or `ticket` (a link made with it). null: no user.',
      ),
    address: z
      .string()
      .nullable()
      .describe('IP address that the request came from; the forwarded one with TRUST_FORWARDED_HEADERS.'),
    requestId: z.string().nullable().describe('`X-Request-Id` of the request, or else of its answer.'),
    action: z.string(),
    subject: z.string(),
    before: fields().describe('The fields that differ, as they were; null: there was no such subject.'),
    after: fields().describe('The same fields afterwards; null: the subject is gone.'),
    changedSecrets: z
      .array(z.string())
      .describe('Names of the secrets that are others than before. Nothing else is kept of them.'),
  })
  .meta({ id: 'AuditEntry' });

export const auditPageOutput = z
  .strictObject({
    entries: z.array(entryOutput),
    nextCursor: z
      .string()
      .nullable()
      .describe('Where the list goes on; null at its end. A page may be short, or empty, although the list goes on.'),
  })
  .meta({ id: 'AuditPage' });

export const pageToShow = ({ entries, next }: EntryPage): z.output<typeof auditPageOutput> => ({
  entries: entries.map(entryToShow),
  nextCursor: next ? toCursor(next) : null,
});

const entryToShow = ({ key, at, ...entry }: Entry): z.output<typeof entryOutput> => ({
  id: key.nr,
  at: at.toISOString(),
  by: byOf(entry),
  ...entry,
});

function byOf({ client, via }: Pick<Entry, 'client' | 'via'>): 'client' | 'user' | 'system' {
  if (client === null) return 'system';
  return via === null ? 'client' : 'user';
}
