/**
 * SQL, of a row of `notification`: before when its publisher asked not to send it (`Deliver-After`); NULL: it did not.
 * One that is dated a moment ahead waits for its date as well, whoever sends or fetches it (src/publishing/terms.ts),
 * and nobody has asked for that.
 */
export const askedNotBefore = `CASE WHEN not_before > accepted_at + interval '1 s' THEN not_before END AS not_before`;
