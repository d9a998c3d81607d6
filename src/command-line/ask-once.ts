import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { AdminRefusal, isPassing, type AdminClient } from './admin-client.js';

const mostTries = 3;
const betweenMs = 1000;

const mayYetWork = (error: unknown): boolean =>
  isPassing(error) || (error instanceof AdminRefusal && error.code === 'idempotency-key-in-flight');

/**
 * Asks for what must not be done twice. Each try has the same key, so one that was carried out, although its answer was
 * lost, is answered with what it did.
 * @param onGivenUp before the last failure is thrown, where it may have been carried out all the same
 */
export async function askOnce<Answer>(
  client: AdminClient,
  path: string,
  body: Record<string, unknown>,
  onGivenUp: () => void,
): Promise<Answer> {
  const headers = { 'idempotency-key': randomUUID() };
  for (let tries = 1; ; tries += 1) {
    try {
      return await client.request<Answer>('POST', path, { body, headers, isRepeatable: true });
    } catch (error) {
      if (!mayYetWork(error)) throw error;
      if (tries === mostTries) {
        onGivenUp();
        throw error;
      }
    }
    await pause(betweenMs);
  }
}
