/** What the user of a session may do, each with everything of the one before: look; mend deliveries and subscriptions; change everything. */
export const userRoles = ['viewer', 'operator', 'administrator'] as const;

export type UserRole = (typeof userRoles)[number];
