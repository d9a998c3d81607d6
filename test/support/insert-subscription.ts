import { randomUUID } from 'node:crypto';

/**
 * A subscription with these columns, as another process commits it: in one statement. A look between two would find the
 * version, and not the subscription. @returns its id
 */
export async function insertSubscription(
  sql: (text: string, values: unknown[]) => Promise<unknown>,
  columns: Record<string, unknown> & { id?: string } = {},
): Promise<string> {
  const { id = randomUUID(), ...given } = columns;
  const shown = { owner_client_id: 'owner', callback_url: 'http://receiver.example/hook', auth: '', channels: '[]' };
  const row = { id, ...shown, ...given };
  const names = Object.keys(row);
  await sql(
    `WITH raised AS (UPDATE catalogue SET version = version + 1 RETURNING version)
     INSERT INTO subscription (${names.join(', ')}, version)
     SELECT ${names.map((_, nr) => `$${nr + 1}`).join(', ')}, version FROM raised`,
    Object.values(row),
  );
  return id;
}
