import { createHash } from 'node:crypto';
import { ruleNames } from './alert-rules.js';
import { memoryNames, type BuildSeen, type Memory } from './memory.js';

/** About forty rounds: builds give way to each other (`claimRound`), so that each has some of them. */
export const besideForMs = 600_000;
/** More do not run beside each other. */
const mostOthers = 5;

/** Differs between two builds of which one has a rule, or data in the memory, that the other one has not. */
export const fingerprintOf = (rules: readonly string[], inMemory: readonly string[]): string =>
  createHash('sha256')
    .update(JSON.stringify([rules.toSorted(), inMemory.toSorted()]))
    .digest('base64url')
    .slice(0, 16);

export const thisBuild = fingerprintOf(ruleNames, memoryNames);

/**
 * The builds that have had rounds of late, with this one, and whether another one may run beside it: that has rules,
 * and data in the memory, that this one does not know. It cannot tell before it has had rounds for as long as another
 * one may have none. A build of a version before notes nothing here, and hands on nothing of it: beside one, no build
 * can ever tell.
 */
export function buildsSeen(
  now: Date,
  { builds: before = {} }: Memory,
  own = thisBuild,
): { builds: NonNullable<Memory['builds']>; isMixed: boolean } {
  const at = now.getTime();
  const recent = Object.entries(before)
    // A time ahead is from before Postgres' clock was set back.
    .map(([name, seen]): [string, BuildSeen] => [
      name,
      { since: Math.min(seen!.since, at), at: Math.min(seen!.at, at) },
    ])
    .filter(([, seen]) => at - seen.at < besideForMs)
    .toSorted(([, one], [, other]) => other.at - one.at);
  const others = recent.filter(([name]) => name !== own).slice(0, mostOthers);
  const since = recent.find(([name]) => name === own)?.[1].since ?? at;
  return {
    builds: Object.fromEntries([...others, [own, { since, at }]]),
    isMixed: others.length > 0 || at - since < besideForMs,
  };
}
