import type { QueryClient } from '@tanstack/react-query';
import { callConsole } from './client.ts';
import { isProblem } from './problem.ts';

export const userRoles = ['viewer', 'operator', 'administrator'] as const;
export type UserRole = (typeof userRoles)[number];

export interface Session {
  user: { name: string; role: UserRole; via: string };
  expiresAt: string;
  version: string;
}

/** How users sign in here: at a provider of that name, or with a superuser's secret. */
export interface WaysIn {
  oidc: boolean;
  label: string | null;
  password: boolean;
}

export const sessionKey = ['session'];
/** Whether the session has ended while a page was open. */
export const isOverKey = ['session-is-over'];
export const waysInKey = ['ways-in'];

/** The input of Publish is kept in the tab under this name, for one user. */
export const draftKey = 'heraut-publish-draft';
const draftOfKey = 'heraut-publish-draft-of';

/** @param name of the user who is there now; null: nobody */
export function keepDraftFor(name: string | null): void {
  try {
    if (name === null || sessionStorage.getItem(draftOfKey) !== name) sessionStorage.removeItem(draftKey);
    if (name === null) sessionStorage.removeItem(draftOfKey);
    else sessionStorage.setItem(draftOfKey, name);
  } catch {
    // storage is switched off: nothing is kept
  }
}

/**
 * The session of this browser; null: nobody is signed in. One that has ended stays as it was, so that the page under
 * the dialog that asks to sign in again keeps its form, with what was typed.
 */
export async function readSession(client: QueryClient): Promise<Session | null> {
  try {
    const session = (await callConsole('GET', 'session')) as Session;
    const before = client.getQueryData<Session | null>(sessionKey);
    keepDraftFor(session.user.name);
    // The screen still shows the data of another user.
    if (before && before.user.name !== session.user.name) location.reload();
    if (client.getQueryData(isOverKey) === true) goOn(client);
    return session;
  } catch (error) {
    if (!isProblem(error) || error.status !== 401) throw error;
    client.setQueryData<WaysIn>(waysInKey, (error.body as { signIn: WaysIn }).signIn);
    const before = client.getQueryData<Session | null>(sessionKey) ?? null;
    client.setQueryData(isOverKey, before !== null);
    return before;
  }
}

export async function signInWithSecret(client: QueryClient, clientId: string, secret: string): Promise<void> {
  await callConsole('POST', 'session', { clientId, secret });
  client.setQueryData(sessionKey, await readSession(client));
}

/** For every call of the admin API that is refused: the session may have ended. */
export function noteRefusal(client: QueryClient, error: unknown): void {
  if (!isProblem(error, 'not-signed-in') || client.getQueryData(isOverKey) === true) return;
  void client.invalidateQueries({ queryKey: sessionKey });
}

/** Data that was refused meanwhile is asked for again. */
function goOn(client: QueryClient): void {
  client.setQueryData(isOverKey, false);
  const isOther = ({ queryKey }: { queryKey: readonly unknown[] }) => queryKey[0] !== sessionKey[0];
  void client.invalidateQueries({ predicate: isOther });
}
