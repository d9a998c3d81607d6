/** The permissions an application may have, as the standard names them. */
export const scopes = {
  publish: 'notificaties.publiceren',
  consume: 'notificaties.consumeren',
} as const;

export type Scope = (typeof scopes)[keyof typeof scopes];

export const allScopes: readonly Scope[] = Object.values(scopes);
