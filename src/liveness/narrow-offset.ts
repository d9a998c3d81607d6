/**
 * By how much the ledger's clock is ahead of this process' own, in milliseconds, after one more comparison. The ledger
 * read its clock at some time between the question and its answer, so the offset is known to lie in a range as wide as
 * that took. The way there may have been much longer than the way back, since a question may wait for a connection;
 * therefore nothing is taken from the middle of the range. An offset that lies in it stays as it is, any other moves
 * just into it: a quick answer corrects what a slow one left open, and a ledger's clock that was set is followed at
 * once.
 * @param known 0 before the first comparison: clocks agree unless they are seen not to. The middle of a slow first
 *   answer would put this process behind a publisher on the same machine, whose notification of this moment would then
 *   lie in the future.
 */
export function narrowOffset(known: number, sentAt: number, ledgerAt: number, receivedAt: number): number {
  const [lowest, highest] = [ledgerAt - receivedAt, ledgerAt - sentAt];
  return Math.min(highest, Math.max(lowest, known));
}
