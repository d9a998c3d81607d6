import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailure, exits } from './exits.js';
import { makeToken } from './make-token.js';

export type Environment = Record<string, string | undefined>;

const remedy = `Set HERAUT_TOKEN, or SUPERUSER_SECRET (and SUPERUSER_CLIENT_ID, unless it is \`heraut\`) as they are set for the server.`;

/** As a header may carry it (RFC 6750 §2.1). */
const tokenForm = /^[\w.~+/-]+=*$/;

/**
 * A token for one request: one that was made for the first request may have expired when the last one is sent.
 * @throws {CommandFailure} where there is none, or it has the form of none. That says nothing of what is in it.
 */
export function tokenFor(environment: Environment, nowMs: number): string {
  const given = environment.HERAUT_TOKEN?.trim();
  if (!given) return superuserToken(environment, nowMs);
  if (tokenForm.test(given)) return given;
  throw new CommandFailure(
    exits.notAllowed,
    'HERAUT_TOKEN is no token: it has a line break, a space or another character in it that a token has not. Set it to the token alone, on one line.',
  );
}

/**
 * With the superuser's secret of the environment, or else the one that the embedded database keeps in `DATA_DIR`.
 * @throws {CommandFailure} where there is neither
 */
export function superuserToken(environment: Environment, nowMs: number, validSeconds?: number): string {
  const clientId = environment.SUPERUSER_CLIENT_ID || 'heraut';
  const secret = environment.SUPERUSER_SECRET || keptSecret(environment);
  if (!secret) throw new CommandFailure(exits.notAllowed, `There is nothing to make a token with. ${remedy}`);
  return makeToken(clientId, secret, nowMs, validSeconds);
}

function keptSecret({ DATABASE_URL, DATA_DIR }: Environment): string | undefined {
  if (DATABASE_URL) return undefined;
  const file = join(DATA_DIR || './data', 'superuser-secret');
  if (!existsSync(file)) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CommandFailure(exits.notAllowed, `${file} cannot be read: ${(error as Error).message}. ${remedy}`);
  }
}
