/** How long things may take on a connection, in milliseconds. */
export interface TimeLimits {
  /** One statement, measured by the server. */
  statement: number;
  /** Waiting for one lock. Shorter than a statement, so that the log tells a lock in the way from a slow statement. */
  lock: number;
  /**
   * Between two statements of a transaction: a process that is frozen there must not keep others waiting for its rows.
   */
  idleInTransaction: number;
  /**
   * The answer, measured by this process. A little more than a statement: normally the server ends it, and knows that
   * it did.
   */
  answer: number;
}

/** For the way there and back, and for a server that is busy while it cancels. */
const onTheWayMs = 1000;
/** Ten times what a busy process needs between two statements. */
const longestIdleMs = 10_000;

export function limitsOf(statementMs: number): TimeLimits {
  return {
    statement: statementMs,
    lock: Math.ceil((statementMs * 2) / 3),
    // No more than a statement: a COMMIT that arrives only after its client has given up finds its transaction ended.
    idleInTransaction: Math.min(longestIdleMs, statementMs),
    answer: statementMs + onTheWayMs,
  };
}

/**
 * Of migrations and partitions: an index of a large table takes minutes, and one process waits until another has
 * migrated.
 */
const longestUpkeepMs = 3_600_000;
export const upkeepLimits: TimeLimits = { ...limitsOf(longestUpkeepMs), lock: longestUpkeepMs };

/** As node-postgres wants them: the first three are settings of the session, which the server keeps to. */
export const asConnectionOptions = (limits: TimeLimits) => ({
  statement_timeout: limits.statement,
  lock_timeout: limits.lock,
  idle_in_transaction_session_timeout: limits.idleInTransaction,
  query_timeout: limits.answer,
});
