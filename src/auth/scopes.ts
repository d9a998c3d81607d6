/** What an application may be allowed, as the standard names it. */
export const scopes = {
  publish: 'notificaties.publiceren',
  consume: 'notificaties.consumeren',
} as const;

export type Scope = (typeof scopes)[keyof typeof scopes];

export const allScopes: readonly Scope[] = Object.values(scopes);
