/**
 * The settings that the statements are written for, where the role, the database or the server has others.
 * node-postgres reads dates in no style but ISO: in any other each would be null. Under a stricter isolation two
 * processes that write the same row would fail (40001). A backslash in a text is one, and begins no escape.
 */
export const ordinarySettings =
  "SET datestyle = ISO; SET default_transaction_isolation = 'read committed'; SET standard_conforming_strings = on";

/**
 * Time limits beside those of Heraut's own (time-limits.ts), which a role, a database or a server may have. The
 * connection that holds the turn to migrate is silent while another one migrates, and a migration of a large table is
 * one transaction of many minutes: ended by such a limit, it would begin anew at each start, without end. Postgres
 * before 17 has no `transaction_timeout`.
 */
export const noOtherLimits =
  "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')";

/**
 * A search has a plan for each of many partitions, and costs more by the planner's reckoning than compiling it is worth
 * (`jit_above_cost`): of searches that read 700 pages in 40 ms, Postgres compiled 400 functions for up to 20 s.
 */
export const withoutJit = 'SET jit = off';

/**
 * Settings of a connection of the hot path. Each of its statements touches a few rows by key. A plan made while a table
 * was still empty would scan it whole, and stay cached after it has grown; and deliveries that are due must be read in
 * the order of the index, not collected and sorted each time they are handed out. A plan node that is switched off but
 * has no alternative costs 10^10 (Postgres before 18), for which every such statement would be compiled, half a second
 * long: hence no JIT.
 */
export const preferIndexes = ['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']
  .map((way) => `SET ${way} = off`)
  .join('; ');

/**
 * All that a connection of the hot path is given: beside those, one plan for each statement, made for any values. By
 * itself Postgres compares costs, and for a statement that is given one or two rows at a time a plan for just these
 * seems cheaper, without end: it then spent twice as long planning `settle` as running it. And no other plan is run
 * than those that are tested on a million rows (test/integration/plans-at-volume.spec.ts). Not for the embedded
 * database, whose one connection serves the rest as well: there it cost a fifth more.
 */
export const asOnHotPath = `${preferIndexes}; SET plan_cache_mode = force_generic_plan`;
