const minuteMs = 60_000;

/**
 * Milliseconds within which what a process has begun to accept is in the ledger, or never will be: a publication waits
 * for its turn, is matched, and is written by a statement and its commit, each of which may take as long as a
 * statement.
 * @param databaseTimeout seconds that a statement may take (DATABASE_TIMEOUT): of the process that accepts
 */
export const acceptedWithin = (databaseTimeout: number): number => minuteMs + 4 * databaseTimeout * 1000;
